import { expect, it } from 'vitest'
import { applyTopics, describeTopics } from '../../../src/control/topics.ts'
import { Deployment } from '../../support/deployment.ts'

it('topics that extractors name for their records are described beside ours, by who has no extractor at hand too', async () => {
  const deployment = await Deployment.open()
  try {
    const named = `${deployment.prefix}books`
    await deployment.read((runtime) => applyTopics(runtime, [named]))
    const described = await deployment.read((runtime) => describeTopics(runtime))
    expect(described.find(({ topic }) => topic === named)).toMatchObject({ messages: 0n })
    expect(described.map(({ topic }) => topic)).toEqual([...new Set(described.map(({ topic }) => topic))])
    // Gone from the broker, and still in the layout.
    await deployment.read((runtime) => runtime.admin.deleteTopic(named))
    expect((await deployment.read((runtime) => describeTopics(runtime))).map(({ topic }) => topic)).not.toContain(named)
  } finally {
    await deployment.close()
  }
})
