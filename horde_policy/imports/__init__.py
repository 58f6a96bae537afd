"""Exports of metrics, request logs and traces into checked frames.

``read_exports`` reads the three series of A25–A27 from whatever a Prometheus, a collector or Grafana wrote.
"""

from horde_policy.imports.counts import Counts
from horde_policy.imports.mapping import Mapping, load_mapping
from horde_policy.imports.names import SERIES_SELECTOR
from horde_policy.imports.parquet import write_parquet
from horde_policy.imports.read import Imported, count_samples, read_exports, read_samples
from horde_policy.imports.report import ImportReport
from horde_policy.imports.samples import Samples, merged
from horde_policy.imports.unpack import ExportFile

__all__ = [
    "SERIES_SELECTOR",
    "Counts",
    "ExportFile",
    "ImportReport",
    "Imported",
    "Mapping",
    "Samples",
    "count_samples",
    "load_mapping",
    "merged",
    "read_exports",
    "read_samples",
    "write_parquet",
]
