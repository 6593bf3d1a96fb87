"""Tables for people, made from the JSON of verdicts and benchmarks and from nothing else."""

from opwright.report.audit_table import audit_table
from opwright.report.bench_table import bench_table
from opwright.report.doctor_table import doctor_table
from opwright.report.verdict_table import verdict_table

__all__ = ["audit_table", "bench_table", "doctor_table", "verdict_table"]
