/**
 * TypeScript types from the Avro schemas, so that code and contract can't drift: `npm run generate` writes
 * `generated/types.ts`, and a test fails when the file differs from what the schemas give.
 */
type Schema = string | readonly Schema[] | { readonly type: Schema; readonly [key: string]: unknown }

interface Field {
  readonly name: string
  readonly type: Schema
  readonly doc?: string
}

const PRIMITIVES: Record<string, string> = {
  null: 'null',
  boolean: 'boolean',
  int: 'number',
  long: 'number',
  float: 'number',
  double: 'number',
  string: 'string',
  bytes: 'Buffer',
}

/** Shape: parsed schemas of records -> source text with one exported type per named type, in order of first use. */
export function generateTypes(schemas: readonly Schema[]): string {
  const written = new Map<string, string>()
  const typeOf = (schema: Schema): string => {
    if (typeof schema === 'string') return PRIMITIVES[schema] ?? simpleName(schema)
    if (Array.isArray(schema)) return schema.map(typeOf).sort(nullLast).join(' | ')
    const complex = schema as {
      type: Schema
      name?: string
      items?: Schema
      values?: Schema
      symbols?: readonly string[]
      fields?: readonly Field[]
      doc?: string
    }
    if (complex.type === 'array') return `readonly ${wrap(typeOf(complex.items ?? 'null'))}[]`
    if (complex.type === 'map') return `Readonly<Record<string, ${typeOf(complex.values ?? 'null')}>>`
    if (complex.type === 'enum') {
      const name = complex.name ?? ''
      written.set(
        name,
        `${comment(complex.doc, '')}export type ${name} = ${(complex.symbols ?? []).map((symbol) => `'${symbol}'`).join(' | ')}\n`,
      )
      return name
    }
    if (complex.type === 'record') {
      const name = complex.name ?? ''
      written.set(name, '')
      const lines = (complex.fields ?? []).map((field) => `${comment(field.doc, '  ')}  readonly ${field.name}: ${typeOf(field.type)}\n`)
      written.delete(name)
      written.set(name, `${comment(complex.doc, '')}export interface ${name} {\n${lines.join('')}}\n`)
      return name
    }
    return typeOf(complex.type)
  }
  for (const schema of schemas) typeOf(schema)
  return `// Written by \`npm run generate\` from schemas/*.avsc. Do not edit.\n\n${[...written.values()].join('\n')}`
}

function simpleName(fullName: string): string {
  return fullName.slice(fullName.lastIndexOf('.') + 1)
}

function wrap(type: string): string {
  return type.includes('|') ? `(${type})` : type
}

function nullLast(a: string, b: string): number {
  return Number(a === 'null') - Number(b === 'null')
}

function comment(doc: string | undefined, indent: string): string {
  return doc === undefined ? '' : `${indent}/** ${doc} */\n`
}
