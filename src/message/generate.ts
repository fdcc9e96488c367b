import { readFileSync, writeFileSync } from 'node:fs'
import { generateTypes } from './type-generator.ts'

/** Entry of `npm run generate`. */
const folder = new URL('../../schemas/', import.meta.url)
const names = ['UrlTask', 'Page', 'Outcome', 'RecordEnvelope', 'Command']
const schemas = names.map((name) => JSON.parse(readFileSync(new URL(`${name}.avsc`, folder), 'utf8')))
writeFileSync(new URL('./generated/types.ts', import.meta.url), generateTypes(schemas))
