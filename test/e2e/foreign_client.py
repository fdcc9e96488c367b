"""A client that knows Millrace only by its topics and its schema files.

produce BROKERS TOPIC URL...      writes {"url": ...}
consume BROKERS TOPIC SCHEMAS N   reads N committed records from the beginning, one line of JSON each
"""

import io
import json
import os
import struct
import sys

import fastavro
from kafka import KafkaConsumer, KafkaProducer


def produce(brokers, topic, urls):
    producer = KafkaProducer(bootstrap_servers=brokers, acks="all")
    for url in urls:
        producer.send(topic, json.dumps({"url": url}).encode()).get(timeout=20)
    producer.close()


def schemas_by_fingerprint(folder):
    """Files are named NAME.FINGERPRINT.avsc."""
    found = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            found[name.split(".")[-2]] = fastavro.parse_schema(json.load(file))
    return found


def consume(brokers, topic, folder, count):
    schemas = schemas_by_fingerprint(folder)
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=brokers,
        group_id=None,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        consumer_timeout_ms=20_000,
    )
    seen = 0
    for message in consumer:
        # Avro single-object encoding: C3 01, then the fingerprint, little endian.
        assert message.value[:2] == b"\xc3\x01", message.value[:2]
        fingerprint = f"{struct.unpack('<Q', message.value[2:10])[0]:016x}"
        record = fastavro.schemaless_reader(io.BytesIO(message.value[10:]), schemas[fingerprint])
        headers = {name: value.decode() for name, value in message.headers}
        line = {"key": message.key.decode(), "headers": headers, "record": record}
        print(json.dumps(line, default=str))
        seen += 1
        if seen == count:
            break
    consumer.close()


if __name__ == "__main__":
    command, brokers, topic, *rest = sys.argv[1:]
    if command == "produce":
        produce(brokers, topic, rest)
    else:
        consume(brokers, topic, rest[0], int(rest[1]))
