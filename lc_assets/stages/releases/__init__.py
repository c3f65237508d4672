"""Named versions: releases, their differences, and pruning of what no name needs."""
