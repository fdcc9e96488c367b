import { isDenial } from '../failure.ts'
import type { KafkajsModules } from './kafkajs-modules.ts'

type Ask = (at: unknown) => Promise<unknown>

interface Cluster {
  readonly brokerPool: { withBroker(ask: Ask): Promise<unknown> }
  findGroupCoordinatorMetadata(wanted: unknown): Promise<unknown>
}

/**
 * Who may not ask for the coordinator of a group or a transactional id is told so. Stock kafkajs asks every broker, drops what each
 * answers and reports a coordinator that was not found, as if the brokers were away: worth trying again, for ever.
 */
export function patchCoordinatorFailure(modules: KafkajsModules): void {
  const { prototype } = modules.load('cluster/index.js') as { prototype: Cluster }
  const stock = prototype.findGroupCoordinatorMetadata
  prototype.findGroupCoordinatorMetadata = async function findWithReason(this: Cluster, wanted): Promise<unknown> {
    let denial: unknown
    const { brokerPool } = this
    const withBroker = (ask: Ask): Promise<unknown> =>
      brokerPool.withBroker((at) =>
        ask(at).catch((error: unknown) => {
          const type = (error as { type?: unknown } | undefined)?.type
          if (typeof type === 'string' && isDenial(type)) denial = error
          throw error
        }),
      )
    try {
      return await stock.call(Object.create(this, { brokerPool: { value: { withBroker } } }) as Cluster, wanted)
    } catch (error) {
      throw denial ?? error
    }
  }
}
