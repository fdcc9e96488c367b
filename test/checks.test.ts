import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

/** Lint, format and types, as tests: one command runs all there is, and one line counts it. */
const run = promisify(execFile)
const root = fileURLToPath(new URL('..', import.meta.url))

async function output(program: string, args: readonly string[]): Promise<string> {
  try {
    await run(process.execPath, [`node_modules/${program}`, ...args], { cwd: root, maxBuffer: 64 * 1024 * 1024 })
    return ''
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    return `${stdout}\n${stderr}`.trim() || String(error)
  }
}

/** Parts of a type that a compiler writes out, where it writes the type of somebody's constant, or that it needs for a check alone. */
const WRITTEN_OUT = ['AvroValue', 'ERRORS', 'EVENTS', 'EventName', 'Exactly', 'FieldOf', 'FieldsOf', 'OPTIONS', 'OptionPath', 'Primitives']

/** Types of ours that exported ones stand on and that have no exported name themselves. */
function unnamedTypes(): string[] {
  const entries = ['index.ts', 'testing.ts'].map((file) => `${root}src/${file}`)
  const { config } = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile)
  const program = ts.createProgram(entries, { ...ts.parseJsonConfigFileContent(config, ts.sys, root).options, noEmit: true })
  const checker = program.getTypeChecker()
  const meant = (symbol: ts.Symbol): ts.Symbol => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol)
  const exported = entries.flatMap((entry) => {
    const file = program.getSourceFile(entry)
    const module = file === undefined ? undefined : checker.getSymbolAtLocation(file)
    return module === undefined ? [] : checker.getExportsOfModule(module).map(meant)
  })
  const reached = new Set(exported)
  const isOurs = (symbol: ts.Symbol): boolean =>
    (symbol.flags & ts.SymbolFlags.TypeParameter) === 0 &&
    symbol.declarations?.[0]?.getSourceFile().fileName.startsWith(`${root}src/`) === true
  const walk = (node: ts.Node): void => {
    // What nobody outside sees: bodies, private members, values.
    if (ts.isVariableDeclaration(node)) return
    const name = ts.isPropertyDeclaration(node) || ts.isMethodDeclaration(node) ? node.name : undefined
    if (ts.isBlock(node) || (name !== undefined && ts.isPrivateIdentifier(name))) return
    if (ts.isTypeReferenceNode(node) || ts.isTypeQueryNode(node) || ts.isExpressionWithTypeArguments(node)) {
      const at = ts.isTypeReferenceNode(node) ? node.typeName : ts.isTypeQueryNode(node) ? node.exprName : node.expression
      const symbol = checker.getSymbolAtLocation(at)
      if (symbol !== undefined && isOurs(meant(symbol))) reached.add(meant(symbol))
    }
    ts.forEachChild(node, walk)
  }
  // A set gives what is added while it is walked, too.
  for (const symbol of reached) symbol.declarations?.forEach(walk)
  return [...reached].filter((symbol) => !exported.includes(symbol)).map(({ name }) => name)
}

describe('the code', () => {
  it('has the types that it says', async () => {
    expect(await output('typescript/bin/tsc', ['--noEmit', '-p', 'test/config/tsconfig.json'])).toBe('')
  }, 300_000)

  it('exports a name for every type that a user can hold, or no constant of theirs could be exported from a package', () => {
    expect(unnamedTypes().sort()).toEqual(WRITTEN_OUT)
  }, 180_000)

  it('is linted and formatted', async () => {
    expect(await output('@biomejs/biome/bin/biome', ['check', '--error-on-warnings', '--colors=off'])).toBe('')
  }, 180_000)
})
