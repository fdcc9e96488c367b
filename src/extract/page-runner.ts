import type { ErrorCode } from '../kernel/errors.ts'
import { errorText, isMillraceError } from '../kernel/errors.ts'
import type { AvroSchema } from '../message/avro.ts'
import { decodeText } from '../message/charset.ts'
import { brokenBodyCode, unpackPageBodySync } from '../message/page-body.ts'
import { LanguageBroken } from './code/built-ins.ts'
import { type LoadedCode, loadCode } from './code/code-extractor.ts'
import { compileExtractor, type DeclarativeExtractor, type Extracted } from './declarative-extractor.ts'
import type { ExtractorInput, ExtractorPage } from './define-extractor.ts'
import { deriveSchema, embedSchema } from './derive-schema.ts'
import { type EnvelopeContext, recordKey, recordOf } from './envelope.ts'
import type { ExtractorSource } from './extractor-source.ts'
import { invalidExtractor } from './language/extractor-problem.ts'
import { readDefinition } from './language/read-definition.ts'
import { compileNative, type NativeExtractor } from './native/compile-native.ts'
import { NativePage } from './native/native-page.ts'
import type { NativeParse } from './native/native-parser.ts'
import { nullsOf } from './nulls.ts'
import type { ExtractionJob } from './page-extraction.ts'
import { createPageSelectors, PageView } from './page-view.ts'
import { createPageParser, type OpenPage } from './parse-page.ts'
import { type JsonLdFaults, type JsonLdNote, jsonLdFaults } from './sources/jsonld.ts'

/** One page for some extractors. */
export interface PageJob extends ExtractionJob {
  /** After an attempt that ended its process: whatever the native parser had to do with it, it is left out. */
  readonly withoutNative?: boolean
}

/** What one extractor makes of a page, as bytes: nothing of the page's text outlives it. */
export type RunResult =
  | {
      readonly kind: 'records'
      readonly extractor: string
      readonly records: readonly EncodedRecord[]
      /** Values without the type of their field, by its path. */
      readonly invalid: Readonly<Record<string, number>>
      /** Records in which a field is null, by its name; those that never are are left out. */
      readonly nulls: Readonly<Record<string, number>>
    }
  | { readonly kind: 'failure'; readonly extractor: string; readonly code: ErrorCode; readonly message: string; readonly field?: string }

export interface EncodedRecord {
  readonly key: string
  /** Avro without framing. */
  readonly value: Buffer
}

/** Runs extractors over pages, one after the other, in this process. */
export interface PageRunner {
  /** It has the native parser for what that is known to read alike. */
  readonly isNative: boolean
  /**
   * Calls `onResult` once per extractor, as soon as it is done, and `onJsonLd` once where JSON-LD was read that is none. Synchronous from
   * beginning to end, since a tree that is held across a turn of the event loop is not collected young.
   */
  run(job: PageJob, onResult: (result: RunResult) => void, onJsonLd?: (faults: JsonLdFaults) => void): void
}

interface Runnable {
  readonly name: string
  readonly version: number
  readonly schema: AvroSchema
  readonly mode: 'document' | 'fragment'
  readonly body:
    | {
        readonly kind: 'declarative'
        readonly extractor: DeclarativeExtractor
        /** Undefined where the extractor is for the default parser alone. */
        readonly native: NativeExtractor | undefined
      }
    | { readonly kind: 'code'; readonly code: LoadedCode }
}

/**
 * Shape: `nativeParse` reads the pages that it is known to read as the default parser does, left out: none. Errors: EXTRACTOR_INVALID,
 * SCHEMA_INVALID.
 */
export function createPageRunner(sources: readonly ExtractorSource[], nativeParse?: NativeParse): PageRunner {
  const runnables = new Map(sources.map(runnableOf).map((runnable) => [runnable.name, runnable]))
  const parser = createPageParser()
  const selectors = createPageSelectors()

  return {
    isNative: nativeParse !== undefined,
    run(job, onResult, onJsonLd) {
      const unpacked = unpackPageBodySync(job.page)
      if (!unpacked.ok) {
        const code = brokenBodyCode(job.page)
        for (const extractor of job.extractors) onResult({ kind: 'failure', extractor, code, message: unpacked.detail })
        return
      }
      const text = decodeText(unpacked.bytes, job.page.charset)
      // Of one tree: the others hold the same scripts.
      let notes: readonly JsonLdNote[] = []
      const note = (page: Pick<PageView, 'jsonLdNotes'>): void => {
        if (notes.length === 0) notes = page.jsonLdNotes
      }
      const wanted = job.extractors.flatMap((name) => runnables.get(name) ?? [])
      const rest =
        nativeParse === undefined || job.withoutNative === true ? wanted : runNatively(nativeParse, wanted, job, text, onResult, note)
      for (const group of groupsOf(rest)) {
        const [first] = group
        if (first === undefined) continue
        try {
          parser.withPage(text, { mode: first.mode }, (open) => {
            const view = new PageView(open.root, job.page.finalUrl, selectors, job.page.charset)
            for (const runnable of group) onResult(runOne(runnable, job, () => extractOne(runnable, job, text, open, view)))
            note(view)
          })
        } catch (error) {
          if (!isMillraceError(error, 'EXTRACT_PAGE_BROKEN')) throw error
          for (const { name: extractor } of group) onResult({ kind: 'failure', extractor, code: error.code, message: error.message })
        }
      }
      if (notes.length > 0) onJsonLd?.(jsonLdFaults(notes))
    },
  }
}

function runnableOf(source: ExtractorSource): Runnable {
  if (source.kind === 'code') {
    const code = loadCode(source)
    const { name, version, description, schema } = code.description
    const embedded = embedSchema(name, description, JSON.parse(schema))
    return { name, version, schema: embedded, mode: 'document', body: { kind: 'code', code } }
  }
  const { definition, problems } = readDefinition(source.text)
  if (definition === undefined) throw invalidExtractor(source.file, problems)
  const { name, version, parse: mode } = definition
  const extractor = compileExtractor(definition)
  const compilation = compileNative(definition)
  const native = compilation.ok ? compilation.extractor : undefined
  return { name, version, schema: deriveSchema(definition), mode, body: { kind: 'declarative', extractor, native } }
}

/**
 * Runs those extractors on the tree of the native parser that can read it, and gives those that are left. None runs there where one needs
 * the default parser in any case: a second tree costs more than it saves.
 */
function runNatively(
  parse: NativeParse,
  wanted: readonly Runnable[],
  job: PageJob,
  text: string,
  onResult: (result: RunResult) => void,
  note: (page: NativePage) => void,
): readonly Runnable[] {
  if (!wanted.every(({ body }) => body.kind === 'declarative' && body.native !== undefined)) return wanted
  const page = NativePage.open(parse, text, job.page.finalUrl, job.page.charset)
  if (page === undefined) return wanted
  try {
    return wanted.filter((runnable) => {
      const extracted = runnable.body.kind === 'declarative' ? runnable.body.native?.extract(page, job.page.canonicalUrl) : undefined
      if (extracted !== undefined) onResult(runOne(runnable, job, () => extracted))
      return extracted === undefined
    })
  } finally {
    note(page)
    page.close()
  }
}

/**
 * Extractors that may share one tree. Declarative ones only read it. Code may change it, so it comes last, and a second one gets a
 * tree of its own: an extractor gives the same records whichever others run beside it.
 */
function groupsOf(wanted: readonly Runnable[]): Runnable[][] {
  const declarative = (mode: Runnable['mode']): Runnable[] =>
    wanted.filter(({ body, mode: own }) => body.kind === 'declarative' && own === mode)
  const [firstCode, ...otherCode] = wanted.filter(({ body }) => body.kind === 'code')
  const documents = declarative('document')
  if (firstCode !== undefined) documents.push(firstCode)
  return [documents, declarative('fragment'), ...otherCode.map((code) => [code])]
}

function extractOne({ body }: Runnable, job: PageJob, text: string, open: OpenPage, view: PageView): Extracted {
  return body.kind === 'declarative' ? body.extractor.extract(view, job.page.canonicalUrl) : runCode(body.code, job, text, open, view)
}

function runOne({ name, version, schema }: Runnable, job: PageJob, extract: () => Extracted): RunResult {
  const context: EnvelopeContext = { ...job, extractor: name, version }
  try {
    const extracted = extract()
    if (!extracted.ok) {
      const { code, message, field } = extracted
      return { kind: 'failure', extractor: name, code, message, ...(field === undefined ? {} : { field }) }
    }
    const records = extracted.items.map((item, index) => ({
      key: recordKey(name, item.entityKey),
      value: schema.encode(recordOf(context, item, index)),
    }))
    return { kind: 'records', extractor: name, records, invalid: extracted.invalid, nulls: nullsOf(extracted.items) }
  } catch (error) {
    if (error instanceof LanguageBroken) throw error
    if (isMillraceError(error, 'MESSAGE_INVALID')) {
      return { kind: 'failure', extractor: name, code: 'EXTRACT_RECORD_INVALID', message: error.message }
    }
    return {
      kind: 'failure',
      extractor: name,
      code: 'EXTRACT_FAILED',
      message: `the extractor failed: ${errorText(error).slice(0, 1_000)}`,
    }
  }
}

function runCode(code: LoadedCode, job: PageJob, text: string, { $ }: OpenPage, view: PageView): Extracted {
  const { page } = job
  const told: ExtractorPage = {
    url: page.finalUrl,
    requestedUrl: page.url,
    canonicalUrl: page.canonicalUrl,
    status: page.status,
    headers: page.headers.map(({ name, value }) => ({ name, value })),
    contentType: page.contentType,
    text,
    fetchedAt: page.fetchedAt,
    depth: page.depth,
    meta: { ...page.meta },
  }
  const input: ExtractorInput = {
    $,
    url: page.finalUrl,
    page: told,
    // Made when it is asked for, and anew for each extractor: it may be changed.
    get jsonld() {
      return view.readJsonLd().nodes
    },
  }
  return code.extract(input, page.fetchId)
}
