import type { AvroNode } from './avro-schema.ts'

/**
 * Parsing canonical form of a schema: what remains of it when everything is left out that does not change how bytes are read.
 * Source: Avro 1.11 specification, "Transforming into Parsing Canonical Form".
 */
export function canonicalForm(root: AvroNode): string {
  return JSON.stringify(shape(root, new Set()))
}

/** Key order is the one the specification asks for: name, type, fields, symbols, items, values, size. */
function shape(node: AvroNode, written: Set<string>): unknown {
  switch (node.kind) {
    case 'union':
      return node.branches.map((branch) => shape(branch, written))
    case 'array':
      return { type: 'array', items: shape(node.items, written) }
    case 'map':
      return { type: 'map', values: shape(node.values, written) }
    case 'record':
    case 'enum':
    case 'fixed': {
      if (written.has(node.name)) return node.name
      written.add(node.name)
      const head = { name: node.name, type: node.kind }
      if (node.kind === 'enum') return { ...head, symbols: node.symbols }
      if (node.kind === 'fixed') return { ...head, size: node.size }
      return { ...head, fields: node.fields.map((field) => ({ name: field.name, type: shape(field.type, written) })) }
    }
    default:
      return node.kind
  }
}

const EMPTY = 0xc15d213aa4d7a795n

/** CRC-64-AVRO (Rabin) of UTF-8 text. Shape: 16 hex characters, big-endian; `"int"` with its quotes gives 7275d51a3f395c8f. */
export function crc64Avro(text: string): string {
  let crc = EMPTY
  for (const byte of Buffer.from(text, 'utf8')) {
    crc = (crc >> 8n) ^ table(Number(crc & 0xffn) ^ byte)
  }
  return crc.toString(16).padStart(16, '0')
}

const entries: bigint[] = []

function table(index: number): bigint {
  let entry = entries[index]
  if (entry === undefined) {
    entry = BigInt(index)
    for (let i = 0; i < 8; i++) entry = (entry >> 1n) ^ (EMPTY & -(entry & 1n))
    entries[index] = entry
  }
  return entry
}
