"""Articles as values written by a schema, by the serializers that producers use."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

import msgspec
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

AVRO: Final = msgspec.json.encode(
    {
        "type": "record",
        "name": "Article",
        "namespace": "feed",
        "fields": [
            {"name": "lang", "type": {"type": "enum", "name": "Lang", "symbols": ["none", "en", "zh"]}},
            {"name": "meta", "type": {"type": "map", "values": "string"}},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {
                "name": "content",
                "type": {
                    "type": "record",
                    "name": "Content",
                    "fields": [{"name": "title", "type": "string"}, {"name": "body", "type": ["null", "string"]}],
                },
            },
            {"name": "published", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        ],
    }
).decode()
FIELDS: Final[dict[str, Any]] = {
    "id": "meta.id",
    "body": "content.body",
    "title": "content.title",
    "source": "meta.source",
    "lang": "lang",
    "published_at": "published",
}
"""The mapping for all three; "meta.url" is nowhere."""

Write = Callable[[dict[str, Any]], bytes]
"""Makes a value of an article: ``id``, ``source``, ``lang``, ``title``, ``body`` and ``published``, in RFC 3339."""


def as_json(article: dict[str, Any]) -> bytes:
    """The value as JSON."""
    return msgspec.json.encode(
        {
            "lang": article["lang"],
            "meta": {"id": article["id"], "source": article["source"]},
            "tags": ["a", "b"],
            "content": {"title": article["title"], "body": article["body"]},
            "published": article["published"],
        }
    )


@contextmanager
def avro_writer(registry_url: str, topic: str) -> Iterator[Write]:
    """The value as Avro."""
    context = SerializationContext(topic, MessageField.VALUE)

    def value(article: dict[str, Any]) -> bytes:
        plain = msgspec.json.decode(as_json(article))
        written = write(plain | {"published": datetime.fromisoformat(article["published"])}, context)
        assert isinstance(written, bytes)
        return written

    with SchemaRegistryClient({"url": registry_url}) as client:
        write = AvroSerializer(client, AVRO)
        yield value


def article_file() -> descriptor_pb2.FileDescriptorProto:
    """The schema as protoc would compile it; the article is the second message of its file."""
    file = descriptor_pb2.FileDescriptorProto(
        name="article.proto", package="feed", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    file.message_type.add(name="Nothing")
    article = file.message_type.add(name="Article")
    content = article.nested_type.add(name="Content")
    meta = article.nested_type.add(name="MetaEntry")
    meta.options.map_entry = True
    text, message, number = 9, 11, 14
    for owner, name, place, kind, label, kind_name in (
        (content, "title", 1, text, 1, None),
        (content, "body", 2, text, 1, None),
        (meta, "key", 1, text, 1, None),
        (meta, "value", 2, text, 1, None),
        (article, "lang", 1, number, 1, ".feed.Lang"),
        (article, "meta", 2, message, 3, ".feed.Article.MetaEntry"),
        (article, "tags", 3, text, 3, None),
        (article, "content", 4, message, 1, ".feed.Article.Content"),
        (article, "published", 5, message, 1, ".google.protobuf.Timestamp"),
    ):
        owner.field.add(
            name=name,
            number=place,
            type=kind,
            label=label,
            type_name=kind_name,
        )
    lang = file.enum_type.add(name="Lang")
    for at, name in enumerate(("none", "en", "zh")):
        lang.value.add(name=name, number=at)
    return file


@contextmanager
def protobuf_writer(registry_url: str, topic: str) -> Iterator[Write]:
    """The value as Protobuf."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(article_file())
    message_class: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("feed.Article"))
    context = SerializationContext(topic, MessageField.VALUE)

    def value(article: dict[str, Any]) -> bytes:
        message = message_class(
            lang=("none", "en", "zh").index(article["lang"]),
            meta={"id": article["id"], "source": article["source"]},
            tags=["a", "b"],
            content={"title": article["title"], "body": article["body"]},
        )
        message.published.FromDatetime(datetime.fromisoformat(article["published"]))
        written = write(message, context)
        assert isinstance(written, bytes)
        return written

    with SchemaRegistryClient({"url": registry_url}) as client:
        write = ProtobufSerializer(message_class, client)
        yield value


WRITERS: Final = {"avro": avro_writer, "protobuf": protobuf_writer}
