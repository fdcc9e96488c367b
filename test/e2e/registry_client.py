"""A client that knows Millrace by its topics and the schema registry alone, with Confluent's own library.

produce BROKERS REGISTRY TOPIC URL...   writes tasks with a schema of one field
consume BROKERS REGISTRY TOPIC N        reads N committed records, each as its writer wrote it
upgrade BROKERS REGISTRY TOPIC N        the same, each as the newest schema of its subject has it
"""

import datetime
import decimal
import json
import sys

from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

MINIMAL = '{"type": "record", "name": "UrlTask", "namespace": "io.millrace.v1", "fields": [{"name": "url", "type": "string"}]}'


def produce(brokers, registry, topic, urls):
    # The level of the subject is for schemas that follow each other; a producer's own may stand under its own name.
    serialize = AvroSerializer(registry, MINIMAL, conf={"subject.name.strategy": lambda ctx, name: "crawler-" + name})
    producer = Producer({"bootstrap.servers": brokers, "acks": "all"})
    for url in urls:
        producer.produce(topic, value=serialize({"url": url}, SerializationContext(topic, MessageField.VALUE)))
    left = producer.flush(20)
    assert left == 0, left


def plain(value):
    if isinstance(value, (datetime.date, datetime.datetime)):
        return f"{type(value).__name__} {value.isoformat()}"
    if isinstance(value, decimal.Decimal):
        return f"Decimal {value}"
    return str(value)


def consume(brokers, registry, topic, count, newest):
    consumer = Consumer(
        {"bootstrap.servers": brokers, "group.id": f"foreign-{topic}-{newest}", "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    )
    consumer.subscribe([topic])
    reader = None
    if newest:
        subject = next(name for name in registry.get_subjects() if name.startswith(topic + "-"))
        reader = registry.get_latest_version(subject).schema.schema_str
    deserialize = AvroDeserializer(registry, reader)
    seen = 0
    while seen < count:
        message = consumer.poll(30)
        assert message is not None, f"only {seen} records came"
        assert message.error() is None, message.error()
        record = deserialize(message.value(), SerializationContext(topic, MessageField.VALUE))
        print(json.dumps({"version": record["extractorVersion"], "url": record["url"], "data": record["data"]}, default=plain))
        seen += 1
    consumer.close()


if __name__ == "__main__":
    command, brokers, url, topic, *rest = sys.argv[1:]
    client = SchemaRegistryClient({"url": url})
    if command == "produce":
        produce(brokers, client, topic, rest)
    else:
        consume(brokers, client, topic, int(rest[0]), command == "upgrade")
