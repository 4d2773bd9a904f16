"""Where records come from: files, standard input, Kafka topics. Bytes only; ``decode`` reads them."""
