import avro, { type Type } from 'avsc'

type Resolver = ReturnType<Type['createResolver']>
type Options = Parameters<Type['createResolver']>[1] & { registry?: object }

/** How the value of one branch is read. */
interface Branch {
  _read(tap: unknown): unknown
}

/** Set on the mended method, so that it is known again when this module is loaded twice. */
const MENDED = Symbol.for('millrace.avsc.branches')

/**
 * Mends how avsc 5.7 reads what a union has written: it takes no schema of which a null can't be read, be that null never written. The
 * specification resolves the branch that was written, so a null fails by itself, and the other values are read.
 */
export function mendBranches(): void {
  const { prototype } = avro.Type
  const { createResolver } = prototype
  if (MENDED in createResolver) return
  function mended(this: Type, writer: Type, options: Options = {}): Resolver {
    if (!isUnion(writer) || writer.types.length < 2) return createResolver.call(this, writer, options)
    // Branches are resolved together, for records within themselves.
    options.registry ??= {}
    const branches = writer.types.map((type): Branch => {
      try {
        return this.createResolver(type, options) as unknown as Branch
      } catch (error) {
        if (!avro.Type.isType(type, 'null')) throw error
        return {
          _read: () => {
            throw error
          },
        }
      }
    })
    const read = (tap: { readLong(): number }): unknown => branches[tap.readLong()]?._read(tap)
    return { _readerType: this, _read: read } as unknown as Resolver
  }
  prototype.createResolver = Object.assign(mended, { [MENDED]: true })
}

function isUnion(type: Type): type is Type & { readonly types: readonly Type[] } {
  return avro.Type.isType(type, 'union')
}
