import { countText } from '../kernel/count-text.ts'
import { shownValue } from '../kernel/shown-value.ts'
import type { AvroNode, DecimalLogical, FixedNode, PrimitiveNode, RecordNode, UnionNode } from './avro-schema.ts'

/**
 * Checks a value against a schema before it is encoded. Stricter than the Avro library, which takes NaN and drops fields that the
 * schema does not have: what a caller gave is either written or refused by name.
 *
 * JavaScript shapes: int, long, float, double, timestamp-millis (epoch ms) = number; bytes, fixed = Buffer; decimal = text such as
 * `-12.50`; date = text `YYYY-MM-DD`; enum = its symbol; map and record = object; union = the value of a branch,
 * with nothing around it.
 */
export interface ValueChecks {
  /** What is wrong with which field; undefined: the value is valid. */
  problem(value: unknown): string | undefined
  /** Of each union in the schema: the number of the branch that takes a valid value of it. */
  readonly branchOf: ReadonlyMap<UnionNode, BranchOf>
}

export type BranchOf = (value: unknown) => number

/** Result: undefined, or path and problem. */
type Check = (value: unknown) => Problem | undefined

interface Problem {
  readonly path: string
  readonly what: string
  /** What would be valid in this place, where it is known. */
  readonly wanted?: string
}

/** What is compiled once: a record may refer to itself. */
interface Compiled {
  readonly records: Map<RecordNode, { check: Check }>
  readonly branchOf: Map<UnionNode, BranchOf>
  /** What unions made of the objects of the value that was checked last, which may be another one by the next check. */
  taken: Map<UnionNode, WeakMap<object, Taken>>
}

/** The branch that takes a value; of one that none takes, -1 and why. */
interface Taken {
  readonly index: number
  readonly problem: Problem | undefined
}

/**
 * Longs that the library reads and writes exactly. It computes in floating point, where the zigzag form of a negative number below
 * -2^52 has no place: it would come back as another, positive number, and nobody would know.
 */
export const MIN_LONG = -4_503_599_627_370_496
export const MAX_LONG = 9_007_199_254_740_990

const DECIMAL = /^-?(\d+)(?:\.(\d+))?$/
const DATE = /^\d{4}-\d{2}-\d{2}$/

/** Compiles the checks of one schema. */
export function valueChecks(root: AvroNode): ValueChecks {
  const compiled: Compiled = { records: new Map(), branchOf: new Map(), taken: new Map() }
  const check = compile(root, compiled)
  return {
    branchOf: compiled.branchOf,
    problem(value) {
      compiled.taken = new Map()
      const problem = check(value)
      if (problem === undefined) return undefined
      return problem.path === '' ? problem.what : `field ${problem.path}: ${problem.what}`
    },
  }
}

function compile(node: AvroNode, compiled: Compiled): Check {
  switch (node.kind) {
    case 'record':
      return compileRecord(node, compiled)
    case 'array': {
      const items = compile(node.items, compiled)
      return (value) => {
        if (!Array.isArray(value)) return expected('a list', value)
        for (const [index, item] of value.entries()) {
          const problem = items(item)
          if (problem !== undefined) return within(`[${index}]`, problem)
        }
        return undefined
      }
    }
    case 'map':
      return compileMap(compile(node.values, compiled))
    case 'union':
      return compileUnion(node, compiled)
    case 'enum':
      return (value) =>
        typeof value === 'string' && node.symbols.includes(value) ? undefined : expected(`one of ${node.symbols.join(', ')}`, value)
    default:
      return leaf(node)
  }
}

function compileRecord(node: RecordNode, compiled: Compiled): Check {
  const known = compiled.records.get(node)
  if (known !== undefined) return (value) => known.check(value)
  const own: { check: Check } = { check: () => undefined }
  compiled.records.set(node, own)
  const fields = node.fields.map((field) => ({ name: field.name, hasDefault: field.hasDefault, check: compile(field.type, compiled) }))
  const names = new Set(fields.map(({ name }) => name))
  own.check = (value) => {
    if (!isObject(value)) return expected('an object', value)
    for (const { name, hasDefault, check } of fields) {
      const given = value[name]
      if (given === undefined && hasDefault) continue
      const problem = given === undefined ? { path: '', what: 'is missing' } : check(given)
      if (problem !== undefined) return within(name, problem)
    }
    for (const name of Object.keys(value)) {
      if (!names.has(name)) return { path: name, what: `is no field of ${node.name}` }
    }
    return undefined
  }
  return own.check
}

function compileMap(values: Check): Check {
  return (value) => {
    if (!isObject(value)) return expected('an object', value)
    for (const [key, item] of Object.entries(value)) {
      if (key === '__proto__') return { path: key, what: 'is a name that is not taken as a key' }
      const problem = values(item)
      if (problem !== undefined) return within(key, problem)
    }
    return undefined
  }
}

/** The first branch that takes a value has it; a float comes last, since it alone may take a number and lose digits of it. */
function compileUnion(node: UnionNode, compiled: Compiled): Check {
  const nullAt = node.branches.findIndex(({ kind }) => kind === 'null')
  const branches = node.branches
    .map((branch, index) => ({ index, isFloat: branch.kind === 'float', check: compile(branch, compiled) }))
    .filter(({ index }) => index !== nullAt)
    .toSorted((a, b) => Number(a.isFloat) - Number(b.isFloat))
  const only = branches.length === 1 ? branches[0] : undefined
  const take = (value: unknown): Taken => {
    const problems: Problem[] = []
    for (const { index, check } of branches) {
      const problem = check(value)
      if (problem === undefined) return { index, problem }
      problems.push(problem)
    }
    // What is wrong within the value says more than that it is no value of the other branches.
    const inner = problems.find(({ path }) => path !== '')
    return { index: -1, problem: inner ?? expected(problems.flatMap(({ wanted }) => wanted ?? []).join(' or ') || 'null', value) }
  }
  // Of unions within each other every branch walks what lies below: without this as often as there are paths through all of them.
  const takeOnce = (value: unknown): Taken => {
    if (only !== undefined || typeof value !== 'object' || value === null) return take(value)
    const ofNode = compiled.taken.get(node) ?? new WeakMap<object, Taken>()
    compiled.taken.set(node, ofNode)
    const taken = ofNode.get(value) ?? take(value)
    ofNode.set(value, taken)
    return taken
  }
  compiled.branchOf.set(node, (value) => (value === null ? nullAt : (only ?? takeOnce(value)).index))
  return (value) => {
    if (value === null) return nullAt === -1 ? { path: '', what: 'is null; expected a value' } : undefined
    return value === undefined ? { path: '', what: 'is missing' } : takeOnce(value).problem
  }
}

function leaf(node: PrimitiveNode | FixedNode): Check {
  const { logical } = node
  if (logical?.name === 'decimal') return (value) => decimalProblem(value, logical)
  if (logical?.name === 'date') return (value) => (isDate(value) ? undefined : expected('a date as YYYY-MM-DD', value))
  switch (node.kind) {
    case 'null':
      return (value) => (value === null ? undefined : expected('null', value))
    case 'boolean':
      return (value) => (typeof value === 'boolean' ? undefined : expected('true or false', value))
    case 'int':
      return (value) => ((value as number) === ((value as number) | 0) ? undefined : expected('an integer of 32 bits', value))
    case 'long':
      return (value) =>
        isLong(value) ? undefined : expected(logical === undefined ? 'an integer from -2^52 to 2^53 - 2' : 'a time as epoch ms', value)
    case 'float':
      return (value) =>
        Number.isFinite(Math.fround(value as number)) && typeof value === 'number'
          ? undefined
          : expected('a finite number of 32 bits', value)
    case 'double':
      return (value) => (Number.isFinite(value) ? undefined : expected('a finite number', value))
    case 'string':
      return (value) => (typeof value === 'string' ? undefined : expected('text', value))
    case 'bytes':
      return (value) => (Buffer.isBuffer(value) ? undefined : expected('a Buffer', value))
    case 'fixed':
      return (value) =>
        Buffer.isBuffer(value) && value.length === node.size ? undefined : expected(`a Buffer of ${countText(node.size, 'byte')}`, value)
  }
}

function decimalProblem(value: unknown, { precision, scale }: DecimalLogical): Problem | undefined {
  const match = typeof value === 'string' ? DECIMAL.exec(value) : null
  if (match === null) return expected('a decimal number as text, such as 12.50', value)
  const fraction = match[2] ?? ''
  if (fraction.length > scale) return expected(`at most ${scale} digits behind the point`, value)
  const digits = (match[1] ?? '').replace(/^0+/, '').length + scale
  return digits > precision ? expected(`at most ${precision} digits, ${scale} of them behind the point`, value) : undefined
}

function isDate(value: unknown): boolean {
  if (typeof value !== 'string' || !DATE.test(value)) return false
  const ms = Date.parse(`${value}T00:00:00Z`)
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(value)
}

function isLong(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= MIN_LONG && (value as number) <= MAX_LONG
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !Buffer.isBuffer(value)
}

function within(part: string, problem: Problem): Problem {
  const path = problem.path === '' || problem.path.startsWith('[') ? `${part}${problem.path}` : `${part}.${problem.path}`
  return { path, what: problem.what }
}

function expected(wanted: string, value: unknown): Problem {
  return { path: '', what: `is ${shownValue(value)}; expected ${wanted}`, wanted }
}
