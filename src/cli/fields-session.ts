import { type FieldDrift, fieldDrift, type Yield } from '../control/extractors/field-drift.ts'
import type { CommandContext } from './context.ts'
import { renderCount, renderTable, toJson } from './render.ts'
import { withRuntime } from './with-runtime.ts'

/** `status --fields`: what the newest records hold, by extractor version and field; of several sites each one as well. */
export async function showFields(context: CommandContext): Promise<void> {
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace status', async (runtime) => {
    const drift = await fieldDrift(runtime, context.draining)
    if (context.globals.json) {
      await context.out(toJson({ fields: drift }))
      return
    }
    await context.out(
      renderTable(
        [
          { title: 'EXTRACTOR', flexible: true },
          { title: 'DOMAIN', flexible: true },
          { title: 'FIELD', flexible: true },
          { title: 'NULL', align: 'right' },
          { title: 'TYPE' },
          { title: 'RECORDS', align: 'right' },
          { title: 'PER PAGE', align: 'right' },
        ],
        drift.flatMap(rowsOf),
      ),
    )
  })
}

/** One site alone is what all of them are. */
function rowsOf(drift: FieldDrift): string[][] {
  const [first, ...others] = drift.domains
  const all = rowsOfYield(drift, others.length === 0 ? (first?.domain ?? 'all') : 'all', drift)
  return others.length === 0 ? all : [...all, ...drift.domains.flatMap((each) => rowsOfYield(drift, each.domain, each))]
}

function rowsOfYield({ extractor, version }: FieldDrift, domain: string, { records, recordsPerPage, fields }: Yield): string[][] {
  return fields.map(({ field, nullRatio, types }) => [
    `${extractor}:${version}`,
    domain,
    field,
    `${(nullRatio * 100).toFixed(1)} %`,
    types.join(' '),
    renderCount(records),
    recordsPerPage.toFixed(2),
  ])
}
