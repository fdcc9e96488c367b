import type { Config } from '../config/options.ts'
import { Runtime } from '../control/runtime/runtime.ts'
import { systemClock } from '../kernel/clock.ts'
import type { CommandContext } from './context.ts'

/** Opens what a verb stands on, does the work, and closes it again, whatever happens. A signal cuts the opening short. */
export async function withRuntime<T>(
  context: CommandContext,
  config: Config,
  owner: string,
  work: (runtime: Runtime) => Promise<T>,
): Promise<T> {
  const runtime = await Runtime.open({ config, owner, clock: systemClock, observer: context.observer, signal: context.draining })
  try {
    return await work(runtime)
  } catch (error) {
    throw await runtime.reasonOf(error)
  } finally {
    await runtime.close()
  }
}
