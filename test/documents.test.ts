import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { OPTIONS, type OptionPath } from '../src/config/options.ts'
import { TRANSACTION_TIMEOUT_MS } from '../src/kafka/fence-transaction.ts'
import { type TopicDefinition, topicDefinitions } from '../src/kafka/topic-definitions.ts'
import { ERRORS } from '../src/kernel/errors.ts'
import { groupNames, topicNames } from '../src/message/topics.ts'
import { DOCUMENT_TABLES, documentedCommands, globalFlags, tableIn, withTable } from './support/document-tables.ts'

/**
 * Holds the documents to the code. `MILLRACE_WRITE_TABLES=1` writes the generated tables into them before they are compared.
 */
const root = fileURLToPath(new URL('..', import.meta.url))
const DOCUMENTS = ['README.md', 'CHANGELOG.md', 'src/README.md', 'test/README.md', 'schemas/README.md']

const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const package_ = JSON.parse(read('package.json')) as { version: string; scripts: Record<string, string> }

/** Cells of the first table below a heading. */
function rowsUnder(text: string, heading: string): string[][] {
  const at = text.indexOf(`\n${heading}\n`)
  if (at < 0) throw new Error(`there is no heading ${heading}`)
  const lines = text.slice(at).split('\n')
  const first = lines.findIndex((line) => line.startsWith('| '))
  const after = lines.findIndex((line, index) => index > first && !line.startsWith('|'))
  return lines.slice(first + 2, after).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
}

const words = (cell: string | undefined): string => (cell ?? '').replaceAll('`', '')

describe('the tables of the documents', () => {
  if (process.env.MILLRACE_WRITE_TABLES === '1') {
    for (const { file, name, table } of DOCUMENT_TABLES) writeFileSync(join(root, file), withTable(read(file), name, table()))
  }

  it.each(DOCUMENT_TABLES)('$name in $file is what the code says', ({ file, name, table }) => {
    expect(tableIn(read(file), name)).toBe(table())
  })

  it('name every exit code that the program can end with, and no other', () => {
    const listed = rowsUnder(read('README.md'), '## Exit codes').map(([code]) => Number(code))
    const signals = [...read('src/cli/main.ts').matchAll(/SIG(?:INT|TERM|HUP): (\d+)/g)].map(([, code]) => Number(code))
    // 3 is what a command says of its work, and no error.
    const known = new Set([0, 3, ...Object.values(ERRORS).map(({ exitCode }) => exitCode), ...signals])
    expect(listed).toEqual([...known].sort((a, b) => a - b))
  })

  it('name every topic, in order, with its retention', () => {
    const rows = rowsUnder(read('README.md'), '## Topics')
    const definitions = defaultTopics()
    expect(rows.map(([topic]) => words(topic))).toEqual(definitions.map(({ topic }) => topic))
    expect(rows.map((row) => retentionOf(words(row[5])))).toEqual(definitions.map(({ configs }) => configs['retention.ms']))
  })

  it('name the groups as they are', () => {
    const groups = groupNames(OPTIONS['topics.prefix'].default)
    const expected = [groups.fetch, groups.delay, groups.frontier, groups.extract(), groups.extract('<name>'), groups.replay('<id>')]
    const missing = expected.filter((group) => !read('README.md').includes(`\`${group}\``))
    expect(missing).toEqual([])
  })
})

/** One number per option, so that a retention tells which option it came from. */
const RETENTION_MS = { html: 1, records: 2, outcomes: 3, deadLetters: 4 } as const

function defaultTopics(): readonly TopicDefinition[] {
  return topicDefinitions({
    names: topicNames(''),
    replication: 1,
    partitions: { urls: 1, records: 1 },
    retention: {
      htmlMs: RETENTION_MS.html,
      recordsMs: RETENTION_MS.records,
      outcomesMs: RETENTION_MS.outcomes,
      deadLettersMs: RETENTION_MS.deadLetters,
    },
    maxBodyBytes: 1024,
    maxMessageBytes: 1024,
  })
}

function retentionOf(cell: string): string {
  if (cell.startsWith('for ever')) return '-1'
  const name = /^topics\.retention\.(\w+)$/.exec(cell)?.[1]
  return String(RETENTION_MS[name as keyof typeof RETENTION_MS])
}

describe('what the documents say of the command line', () => {
  const commands = documentedCommands()
  const texts = DOCUMENTS.map((file) => ({ file, text: read(file) }))

  it('uses commands and flags that exist', () => {
    const wrong = texts.flatMap(({ file, text }) =>
      invocations(text).flatMap((line) => problemsOf(line).map((problem) => `${file}: ${problem} in: millrace ${line}`)),
    )
    expect(wrong).toEqual([])
  })

  it('uses options that exist', () => {
    const groups = new Set(Object.keys(OPTIONS).map((path) => path.split('.')[0]))
    const wrong = texts.flatMap(({ file, text }) =>
      [...text.matchAll(/`([a-z]+(?:\.[a-zA-Z]+)+)`|--set ([a-zA-Z.]+)=/g)]
        .map(([, span, set]) => ({ path: span ?? set ?? '', isSet: set !== undefined }))
        .filter(({ path, isSet }) => isSet || (groups.has(path.split('.')[0]) && !/\.(ts|md|avsc|yaml|json|id|reset)$/.test(path)))
        .filter(({ path }) => !isOptionOrGroup(path))
        .map(({ path }) => `${file}: ${path}`),
    )
    expect(wrong).toEqual([])
  })

  it('shows an example in the help of each command, of commands and flags that exist', () => {
    const wrong = commands.flatMap(({ name, help }) => {
      const lines = invocations(help.replaceAll(/\\\n\s*/g, '').replaceAll(/^ +/gm, ''))
      return lines.length === 0 ? [`${name} has no example`] : lines.flatMap(problemsOf).map((problem) => `${name}: ${problem}`)
    })
    expect(wrong).toEqual([])
  })

  /** Problems of one command line, as far as names of commands and flags go. */
  function problemsOf(line: string): string[] {
    const parts = line.split(/\s+/).filter((part) => part !== '')
    const command = commands
      .filter(({ name }) => name.split(' ').every((word, index) => parts[index] === word))
      .sort((a, b) => b.name.length - a.name.length)[0]
    const families = new Set(commands.flatMap(({ name }) => (name.includes(' ') ? [name.split(' ')[0]] : [])))
    const [first = ''] = parts
    if (command === undefined && !families.has(first) && !first.startsWith('-')) return [`no command ${first}`]
    if (command === undefined && families.has(first) && parts.length > 1 && !(parts[1] ?? '').startsWith('-')) {
      return [`no command ${first} ${parts[1]}`]
    }
    const allowed = [...(command?.flags ?? []), ...globalFlags()]
    return parts
      .map((part) => part.split('=')[0] ?? '')
      .filter((part) => /^--[a-z]/.test(part) && !allowed.includes(part))
      .map((flag) => `no flag ${flag}`)
  }
})

function isOptionOrGroup(path: string): boolean {
  return Object.hasOwn(OPTIONS, path) || (Object.keys(OPTIONS) as OptionPath[]).some((option) => option.startsWith(`${path}.`))
}

/** What stands behind `millrace ` at the start of a line of an example or of a code span, up to a pipe or a comment. */
function invocations(text: string): string[] {
  const spans = [...text.matchAll(/`(?:npx )?millrace ([^`\n]+)`/g)].map(([, line]) => line ?? '')
  const lines = [...text.matchAll(/^(?:\$ )?(?:npx )?millrace (.+)$/gm)].map(([, line]) => line ?? '')
  return [...spans, ...lines].map((line) => (line.split(/\s[|#>&]/)[0] ?? '').trim())
}

describe('the documents', () => {
  it('link to what exists, and to headings that exist', () => {
    const wrong = DOCUMENTS.flatMap((file) =>
      [...withoutExamples(read(file)).matchAll(/\]\(([^)\s]+)\)/g)]
        .map(([, target]) => target ?? '')
        .filter((target) => !/^[a-z]+:/.test(target) && !isThere(file, target))
        .map((target) => `${file} -> ${target}`),
    )
    expect(wrong).toEqual([])
  })

  it('name files and folders that exist', () => {
    const wrong = DOCUMENTS.flatMap((file) =>
      [...withoutExamples(read(file)).matchAll(/`((?:src|test|schemas|\.ci)\/[\w./-]+)`/g)]
        .map(([, path]) => path ?? '')
        .filter((path) => !existsSync(join(root, path)))
        .map((path) => `${file}: ${path}`),
    )
    expect(wrong).toEqual([])
  })

  it('name no path of a machine', () => {
    const bad = [/\/(?:home|root|Users|work|private|tmp)\/\w/, new RegExp(escaped(homedir())), new RegExp(escaped(root))]
    const wrong = DOCUMENTS.filter((file) => bad.some((pattern) => pattern.test(read(file))))
    expect(wrong).toEqual([])
  })

  it('give the two commands of a newcomer word for word, and CI runs them', () => {
    const readme = read('README.md')
    for (const command of ['npm ci && npm start', 'npm ci && npm test']) expect(readme).toContain(`\n${command}\n`)
    const ci = read('.ci/run')
      .split('\n')
      .filter((line) => line.startsWith('npm'))
    expect(ci.join(' && ')).toBe('npm ci && npm test')
    expect(Object.keys(package_.scripts)).toEqual(expect.arrayContaining(['start', 'test']))
  })

  it('tell how long a transaction may hang', () => {
    expect(read('README.md').replaceAll(/\s+/g, ' ')).toContain(`for ${TRANSACTION_TIMEOUT_MS / 1_000} s, after which the broker aborts it`)
  })

  it('tell of the version that package.json has', () => {
    expect(/^## (\S+)/m.exec(read('CHANGELOG.md'))?.[1]).toBe(package_.version)
  })
})

describe('the map of src', () => {
  const entries = mapEntries(rowsUnder(read('src/README.md'), '## Map'))

  it('has every folder, once, and no other', () => {
    const folders = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => `${join(entry.parentPath, entry.name).slice(join(root, 'src').length + 1)}/`)
    expect(entries.map(({ folder }) => folder).sort()).toEqual(folders.sort())
  })

  it('says of every folder what it is for, and where to begin', () => {
    expect(entries.filter(({ ideas, files }) => ideas.includes('') || files.length === 0)).toEqual([])
  })

  it('names files that exist in their folder', () => {
    const wrong = entries.flatMap(({ folder, files }) =>
      files.map((file) => `src/${folder}${file}`).filter((path) => !existsSync(join(root, path))),
    )
    expect(wrong).toEqual([])
  })

  it('walks by files that exist', () => {
    const text = read('src/README.md')
    const folders = new Set(entries.map(({ folder }) => folder.split('/')[0]))
    const wrong = [...text.matchAll(/`([a-z]+(?:\/[\w.-]+)+\.ts)`/g)]
      .map(([, path]) => path ?? '')
      .filter((path) => folders.has(path.split('/')[0]) && !existsSync(join(root, 'src', path)))
    expect(wrong).toEqual([])
  })
})

/** A row without a folder is another idea of the one above. */
function mapEntries(rows: readonly (readonly string[])[]): readonly MapEntry[] {
  const entries: MapEntry[] = []
  for (const [folder = '', idea = '', begin = ''] of rows) {
    if (folder !== '') entries.push({ folder: words(folder), ideas: [], files: [] })
    const entry = entries.at(-1)
    entry?.ideas.push(idea)
    entry?.files.push(...[...begin.matchAll(/`([\w.-]+\.(?:ts|yaml))`/g)].map(([, file]) => file ?? ''))
  }
  return entries
}

interface MapEntry {
  readonly folder: string
  readonly ideas: string[]
  readonly files: string[]
}

function isThere(file: string, target: string): boolean {
  const [path = '', anchor] = target.split('#')
  const found = path === '' ? file : join(dirname(file), path)
  if (!existsSync(join(root, found))) return false
  return anchor === undefined || anchorsOf(read(found)).includes(anchor)
}

function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
    (title ?? '')
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .trim()
      .replaceAll(/\s/g, '-'),
  )
}

function withoutExamples(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```/gm, '')
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
