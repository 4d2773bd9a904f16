"""Where records come from: files, standard input, Kafka topics. A record is bytes; ``decode`` reads them."""
