import { collectBlobs } from '../control/blobs.ts'
import type { CommandContext } from './context.ts'
import { counted, renderBytes, toJson } from './render.ts'
import { withRuntime } from './with-runtime.ts'

export async function collect(context: CommandContext, execute: boolean): Promise<void> {
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace blobs collect', async (runtime) => {
    const report = await collectBlobs(runtime, { execute, signal: context.draining })
    if (context.globals.json) {
      await context.out(toJson(report))
      return
    }
    const { store, before, seen, collected } = report
    await context.out(`${store}: ${counted(seen.count, 'blob')}, ${renderBytes(seen.bytes)}`)
    if (before === undefined) {
      await context.out('pages are kept for ever, and so are their bodies')
      return
    }
    const what = `${counted(collected.count, 'blob')}, ${renderBytes(collected.bytes)}, last written before ${new Date(before).toISOString()}`
    await context.out(execute ? `deleted: ${what}` : `would be deleted: ${what}; nothing was changed, --execute does it`)
  })
}
