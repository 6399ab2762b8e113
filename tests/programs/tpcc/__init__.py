"""TPC-C by another's program (``pingcap/go-tpc``), streamed into a lake, and its consistency conditions there.

``workload`` builds and runs the program; ``source`` is the server, Kafka and the connector, which are killed while it
runs; ``recording`` is what came of it in the topics; ``player`` applies a recording in one process whose storage dies;
``conditions`` are 3.3.2.1 to 3.3.2.12, ``cuts`` the states of the lake in which they must hold.
"""
