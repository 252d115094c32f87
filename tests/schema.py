# SPDX-License-Identifier: GPL-2.0-only
"""schema.py SCHEMA VIEW FILE...: whether files of JSON, or of an object in each line, are what the schema says of a view.

Knows of JSON Schema what user/doc/profiltool.schema.json uses, and ends at a word that it does not know.
"""
import json
import sys

KINDS = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
         "null": type(None)}
KNOWN = {"$ref", "description", "type", "enum", "required", "properties", "additionalProperties", "items"}


def wrong(value, schema, where, all):
    """Yields what is wrong with a value."""
    while "$ref" in schema:
        schema = all["definitions"][schema["$ref"].removeprefix("#/definitions/")]
    if set(schema) - KNOWN:
        raise SystemExit(f"{where}: this checker does not know {set(schema) - KNOWN}")
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(value, KINDS[k]) and (k == "boolean") == isinstance(value, bool) for k in kinds):
        yield f"{where}: {value!r:.60} is no {' or '.join(kinds)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r:.60} is none of {schema['enum']}"
    if isinstance(value, dict):
        known = schema.get("properties", {})
        others = schema.get("additionalProperties", {})
        for key in schema.get("required", []):
            if key not in value:
                yield f"{where}: no {key}"
        for key, part in value.items():
            if key not in known and others is False:
                yield f"{where}: {key} is not in the schema"
            else:
                yield from wrong(part, known.get(key, others), f"{where}.{key}", all)
    if isinstance(value, list) and "items" in schema:
        for part in value:
            yield from wrong(part, schema["items"], where + "[]", all)


schema = json.load(open(sys.argv[1]))
found = {}
for name in sys.argv[3:]:
    text = open(name).read()
    values = map(json.loads, text.splitlines()) if sys.argv[2] == "top" else [json.loads(text)]
    for value in values:
        found.update(dict.fromkeys(wrong(value, {"$ref": "#/definitions/" + sys.argv[2]}, sys.argv[2], schema)))
print(*list(found)[:20], sep="\n")
sys.exit(bool(found))
