"""Whatever outlives a run: journals, locked files, folders of finished parts, records, archives."""
