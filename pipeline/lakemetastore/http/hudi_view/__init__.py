"""The requests of Hudi's remote file system view (``hoodie.filesystem.view.type=REMOTE_FIRST``), Hudi 1.2.0."""
