"""Values of messages that are written by a schema: Avro and Protobuf, with the schemas of a registry.

::

    bytes ──▶ written.py     which schema: magic byte, id (Confluent's wire format); what is known of it is kept
                registry.py      the schema of an id, asked for once
                avro.py          a schema and a payload → plain values
                protobuf.py      the same
                room.py          how much a payload may become
              outages.py     a registry that is out of reach is waited for, as a store is

What comes out are plain values, as of JSON: ``consumer.article`` maps and checks them in the same way.
"""
