"""Running a stage's tasks in this machine's processes or on a cluster, behind one method."""
