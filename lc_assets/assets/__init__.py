"""One module per stage: an asset names its places, calls one verb of `lc_assets.stages`,
reports.
"""
