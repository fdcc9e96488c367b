import { describe, expect, it } from 'vitest'
import { planFindings } from '../../../../src/control/inspect/doctor.ts'
import type { TopicPlan } from '../../../../src/kafka/topic-plan.ts'

const nothing: TopicPlan = { changes: [], refusals: [], notes: [] }

describe('what doctor says of the topics', () => {
  it('is that they are as wanted only where nothing differs', () => {
    expect(planFindings(nothing, 12)).toMatchObject([{ level: 'ok', text: '12 topics as the configuration wants them' }])
    const refusals = [{ kind: 'fewer-partitions', topic: 'records', message: 'has 6 partitions' }] as const
    expect(planFindings({ ...nothing, refusals }, 12)).toMatchObject([{ level: 'fail', text: 'has 6 partitions' }])
    const notes = [{ kind: 'replication-differs', topic: 'html', message: 'has replication 1' }] as const
    expect(planFindings({ ...nothing, notes }, 12)).toMatchObject([{ level: 'warn', text: 'has replication 1' }])
    const changes = [{ kind: 'add-partitions', topic: 'html', from: 2, to: 4 }] as const
    expect(planFindings({ ...nothing, notes, changes }, 12).map(({ level }) => level)).toEqual(['warn', 'warn'])
  })
})
