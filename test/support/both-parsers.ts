import { NativePage } from '../../src/extract/native/native-page.ts'
import { type NativeParse, nativeParser } from '../../src/extract/native/native-parser.ts'
import { createPageRunner, type RunResult } from '../../src/extract/page-runner.ts'
import type { Page } from '../../src/message/generated/types.ts'
import { testJob, testPage } from './extraction.ts'

/** The native parser, which tests have. Errors: where it can't be used. */
export function nativeParse(): NativeParse {
  const parser = nativeParser()
  if (!parser.ok) throw new Error(parser.reason)
  return parser.parse
}

/** Runs extractor files on a page by the default parser, and again with the native one. */
export interface BothParsers {
  /** Shape: results in the order of the files, records as bytes; nativeParses: how often the native parser was asked. */
  run(
    page: Buffer,
    url?: string,
    change?: Partial<Page>,
  ): { readonly parsed: readonly RunResult[]; readonly native: readonly RunResult[]; readonly nativeParses: number }
}

/** Shape: texts of extractor files, each with a name of its own. */
export function bothParsers(texts: readonly string[]): BothParsers {
  const parse = nativeParse()
  const sources = texts.map((text, index) => ({ kind: 'declarative' as const, file: `${index}.yaml`, text }))
  const names = texts.map((text) => /^name: (.*)$/m.exec(text)?.[1] ?? '')
  let parses = 0
  const counted: NativeParse = (text) => {
    parses += 1
    return parse(text)
  }
  const withoutNative = createPageRunner(sources)
  const withNative = createPageRunner(sources, counted)
  return {
    run(body, url = 'http://shop.example.test/p/1', change = {}) {
      const job = testJob(testPage(body, url, change), names)
      const parsed: RunResult[] = []
      const native: RunResult[] = []
      withoutNative.run(job, (result) => parsed.push(result))
      parses = 0
      withNative.run(job, (result) => native.push(result))
      return { parsed, native: names.flatMap((name) => native.filter(({ extractor }) => extractor === name)), nativeParses: parses }
    },
  }
}

/** Whether the guards let the native parser read a page. */
export function isReadNatively(text: string): boolean {
  const page = NativePage.open(nativeParse(), text, 'http://shop.example.test/p/1')
  page?.close()
  return page !== undefined
}
