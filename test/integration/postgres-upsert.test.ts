import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hasPostgres, OwnPostgres, postgresNote } from '../support/own-postgres.ts'
import { SeededRandom } from '../support/random.ts'

interface SinkRecord {
  readonly key: string
  readonly fetchedAt: number
  readonly extractorVersion: number
  readonly recordId: string
  readonly title: string
}

/** Three entities, fetched three times each, extracted live by version 1, later by version 2, and both of them replayed. */
const RECORDS: readonly SinkRecord[] = ['a', 'b', 'c'].flatMap((entity) =>
  [1000, 2000, 3000].flatMap((fetchedAt) =>
    [1, 2].map((extractorVersion) => ({
      key: `book/${entity}`,
      fetchedAt,
      extractorVersion,
      recordId: `${entity}${fetchedAt}v${extractorVersion}`,
      title: `${entity} of ${fetchedAt} by ${extractorVersion}`,
    })),
  ),
)
/** Two elements of one page with one key: neither is newer, and yet every order must end alike. */
const TWINS: readonly SinkRecord[] = ['x', 'y'].map((recordId) => ({
  key: 'book/d',
  fetchedAt: 3000,
  extractorVersion: 2,
  recordId,
  title: `twin ${recordId}`,
}))

/** The statements of README.md: what is shown there is what is tested. */
const [table = '', upsert = ''] = (
  /```sql\n([\s\S]*?)```/.exec(readFileSync(new URL('../../README.md', import.meta.url), 'utf8'))?.[1] ?? ''
).split(/\n\n/)

const execute = ({ key, fetchedAt, extractorVersion, recordId, title }: SinkRecord): string =>
  `EXECUTE put('${key}', ${fetchedAt}, ${extractorVersion}, '${recordId}', '${JSON.stringify({ title })}');`

function shuffled<T>(items: readonly T[], random: SeededRandom): T[] {
  return items
    .map((item) => ({ item, rank: random.next() }))
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ item }) => item)
}

describe.skipIf(!hasPostgres)(`the upsert of the README into PostgreSQL${postgresNote}`, () => {
  const postgres = hasPostgres ? new OwnPostgres() : undefined
  beforeAll(() => {
    postgres?.start()
    postgres?.sql(table)
  })
  afterAll(() => postgres?.stop())

  it('ends with the newest fetch by the newest version, in whatever order live and replayed records come, and however often', () => {
    const expected = ['a', 'b', 'c'].map((entity) => `book/${entity}|${entity} of 3000 by 2`)
    for (let seed = 1; seed <= 25; seed += 1) {
      const random = new SeededRandom(seed)
      const messages = [...shuffled([...RECORDS, ...TWINS], random), ...shuffled(RECORDS, random).slice(0, 7)]
      const script = ['TRUNCATE records;', `PREPARE put(text, bigint, int, text, jsonb) AS ${upsert}`, ...messages.map(execute)]
      const rows = postgres?.sql(`${script.join('\n')}\nSELECT key, data->>'title' FROM records ORDER BY key;`)
      expect(rows?.split('\n')).toEqual([...expected, 'book/d|twin y'])
    }
  })
})
