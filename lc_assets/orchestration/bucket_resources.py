"""The build context of a lake in a bucket, with the client of dagster-gcp's resource.

A module of its own, because importing dagster-gcp takes more than a second.
"""

import dagster as dg
from dagster_gcp import GCSResource

from lc_assets.lake.bucket_lake import open_lake
from lc_assets.lake.lake import Lake
from lc_assets.orchestration.resources import BuildContextResource


class BucketBuildContextResource(BuildContextResource):
    """The build context of a lake in a bucket; ``gcs`` has the client."""

    gcs: dg.ResourceDependency[GCSResource]

    def lake_folder(self) -> Lake:
        """The lake, by the resource's client."""
        return open_lake(self.lake, client=self.gcs.get_client())
