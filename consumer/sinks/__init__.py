"""Where verdicts and dead letters go: files, standard output, Kafka with and without transactions."""
