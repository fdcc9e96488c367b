import { fieldDrift } from '../control/field-drift.ts'
import type { CommandContext } from './context.ts'
import { renderCount, renderTable, toJson } from './render.ts'
import { withRuntime } from './with-runtime.ts'

const right = 'right' as const

/** `status --fields`: what the newest records hold, by extractor version and field. */
export async function showFields(context: CommandContext): Promise<void> {
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace status', async (runtime) => {
    const drift = await fieldDrift(runtime)
    if (context.globals.json) {
      await context.out(toJson({ fields: drift }))
      return
    }
    const rows = drift.flatMap(({ extractor, version, records, recordsPerPage, fields }) =>
      fields.map(({ field, nullRatio, types }) => [
        `${extractor}:${version}`,
        field,
        `${(nullRatio * 100).toFixed(1)} %`,
        types.join(' '),
        renderCount(records),
        recordsPerPage.toFixed(2),
      ]),
    )
    await context.out(
      renderTable(
        [
          { title: 'EXTRACTOR', flexible: true },
          { title: 'FIELD', flexible: true },
          { title: 'NULL', align: right },
          { title: 'TYPE' },
          { title: 'RECORDS', align: right },
          { title: 'PER PAGE', align: right },
        ],
        rows,
      ),
    )
  })
}
