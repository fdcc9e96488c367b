import { readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BuildFailure, BuildResult, Location, Message } from 'esbuild'
import { errorText, MillraceError } from '../../kernel/errors.ts'
import { sha256OfJson } from '../language/canonical-definition.ts'
import { type ExtractorProblem, invalidExtractor } from '../language/extractor-problem.ts'

/** A code extractor with all that it imports, as one text. */
export interface BundledModule {
  readonly code: string
  /** From places in `code` to places in those files, JSON text; its sources are relative to the folder of the module. */
  readonly sourceMap: string
  /** sha256 over the text of every file that went in, hex; the same on every machine. */
  readonly sourceSha256: string
}

/** JavaScript and TypeScript that can be extractors. */
export const CODE_FILE = /\.(js|mjs|cjs|ts|mts|cts)$/

/**
 * Bundles a code extractor. Once it is one text, a process that is replaced runs the same code as the one before, whatever became of
 * the files; its hash covers what it imports; and `import 'millrace'` works whether or not it is installed where the module lies.
 * Errors: EXTRACTOR_INVALID with file, line and column.
 */
export async function bundleModule(file: string): Promise<BundledModule> {
  const path = resolve(file)
  const esbuild = await loadEsbuild()
  let result: BuildResult<{ write: false; metafile: true }>
  try {
    result = await esbuild.build({
      entryPoints: [path],
      absWorkingDir: dirname(path),
      bundle: true,
      write: false,
      metafile: true,
      format: 'cjs',
      platform: 'node',
      target: 'node20',
      charset: 'utf8',
      // As modules are, which the bundler forgets: else `this` of a function that is called of nothing, and a name that nobody declared,
      // are of the real global object, which all modules of the process share.
      banner: { js: '"use strict";' },
      // Nothing is written: it names what the map's sources are relative to.
      outfile: join(dirname(path), 'extractor.js'),
      sourcemap: 'external',
      sourcesContent: false,
      logLevel: 'silent',
      // A tsconfig somewhere above must not change what an extractor means.
      tsconfigRaw: {},
      alias: { millrace: ownModule() },
    })
  } catch (cause) {
    throw isBuildFailure(cause)
      ? invalidExtractor(
          file,
          cause.errors.map((error) => problemOf(file, error)),
          cause,
        )
      : cause
  }
  const map = result.outputFiles.find((output) => output.path.endsWith('.map'))
  const output = result.outputFiles.find((each) => each !== map)
  if (output === undefined || map === undefined) throw new MillraceError('INTERNAL', `bundling ${file} gave no text`)
  return { code: output.text, sourceMap: map.text, sourceSha256: sourceHash(dirname(path), Object.keys(result.metafile.inputs)) }
}

/** The part of Millrace that a module may import: one file without imports of its own. */
function ownModule(): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return fileURLToPath(new URL(`../define-extractor.${extension}`, import.meta.url))
}

async function loadEsbuild(): Promise<typeof import('esbuild')> {
  try {
    return await import('esbuild')
  } catch (cause) {
    throw new MillraceError(
      'EXTRACTOR_INVALID',
      `extractors in JavaScript and TypeScript need the package esbuild, which can't be loaded: ${errorText(cause)}`,
      { cause },
    )
  }
}

/** Own files are left out: another version of Millrace is no other extractor. Order and folder of the files do not count. */
function sourceHash(folder: string, inputs: readonly string[]): string {
  const own = ownModule()
  const texts = inputs
    .map((input) => resolve(folder, input))
    .filter((path) => path !== own)
    .map((path) => readFileSync(path, 'utf8').replaceAll('\r\n', '\n'))
  return sha256OfJson(texts.toSorted())
}

/** In the file that has it, which may be one that the module imports. */
function problemOf(file: string, { text: told, location, notes }: Message): ExtractorProblem {
  // The bundler speaks of its own format.
  const text = told.startsWith('Top-level await')
    ? 'an extractor is loaded without waiting: `await` outside of a function is not possible'
    : told
  if (location === null) return { severity: 'error', message: text, line: undefined, column: undefined }
  const own = location.file === basename(file) ? file : join(dirname(file), location.file)
  return { severity: 'error', message: text, file: own, ...placeIn(own, location, notes[0]?.location ?? undefined) }
}

/** What is found missing at the end of a file, behind its last line, is missing where a note says that it opens, or where the text ends. */
function placeIn(file: string, { line, column, lineText }: Location, opening: Location | undefined): { line: number; column: number } {
  const lines = lineText === '' ? readFileSync(file, 'utf8').trimEnd().split('\n') : []
  if (lineText !== '' || line <= lines.length) return { line, column: column + 1 }
  if (opening !== undefined) return { line: opening.line, column: opening.column + 1 }
  return { line: lines.length, column: (lines.at(-1) ?? '').length + 1 }
}

function isBuildFailure(error: unknown): error is BuildFailure {
  return error instanceof Error && 'errors' in error && Array.isArray(error.errors)
}
