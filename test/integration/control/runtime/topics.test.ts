import { expect, it } from 'vitest'
import { describeTopics } from '../../../../src/control/inspect/describe-topics.ts'
import { applyTopics, layoutDifferences, prepareTopics } from '../../../../src/control/runtime/topics.ts'
import { Deployment } from '../../../support/deployment.ts'
import { RecordingObserver } from '../../../support/embedded.ts'
import { eventually } from '../../../support/eventually.ts'

it('topics that extractors name for their records are described beside ours, by who has no extractor at hand too', async () => {
  const deployment = await Deployment.open()
  try {
    const named = `${deployment.prefix}books`
    await deployment.read((runtime) => applyTopics(runtime, [named]))
    // So that no stage needs to write there.
    await deployment.read(async (runtime) => {
      const { schemaStore, control } = runtime
      const told = (await control()).withPrefix('schema:').map(({ subject }) => subject)
      expect(told).toEqual(['UrlTask', 'Page', 'Outcome'].map((name) => `schema:${schemaStore.current(name as 'Page').fingerprint}`))
    })
    const described = await deployment.read((runtime) => describeTopics(runtime))
    expect(described.find(({ topic }) => topic === named)).toMatchObject({ offsets: 0n })
    expect(described.map(({ topic }) => topic)).toEqual([...new Set(described.map(({ topic }) => topic))])
    // Gone from the broker, and still in the layout.
    await deployment.read((runtime) => runtime.admin.deleteTopic(named))
    const topics = async (): Promise<string[]> => (await deployment.read((runtime) => describeTopics(runtime))).map(({ topic }) => topic)
    await eventually(async () => !(await topics()).includes(named), { what: 'the topic to go' })
  } finally {
    await deployment.close()
  }
})

it('partitions that another tool has added are told of, and taken into the layout by `topics apply`', async () => {
  const deployment = await Deployment.open({ set: ['topics.partitions.records=4'] })
  try {
    const lanes = ['urls.high', 'urls', 'urls.low'].map((name) => `${deployment.prefix}${name}`)
    await deployment.read(async (runtime) => {
      expect(await layoutDifferences(runtime)).toEqual([])
      for (const topic of lanes) await runtime.admin.addPartitions(topic, 6)
      const found = await layoutDifferences(runtime)
      expect(found.map(({ topic }) => topic).sort()).toEqual([...lanes].sort())
      expect(found).toEqual(expect.arrayContaining(lanes.map((topic) => ({ topic, layout: 4, partitions: 6 }))))
    })
    const asked = ['topics.partitions.urls=6', ...['delay', 'html', 'outcomes'].map((name) => `topics.partitions.${name}=4`)]
    const doctor = await deployment.run(['doctor'], undefined, asked)
    expect(doctor.stdout).toContain(`${deployment.prefix}urls has 6 partitions, and all members go by 4: the others stay unused`)
    const plan = await deployment.run(['topics', 'plan', '--json'], undefined, asked)
    expect(JSON.parse(plan.stdout)).toEqual(lanes.map((topic) => ({ kind: 'set-layout', topic, from: 4, to: 6 })))
    const applied = await deployment.run(['topics', 'apply'], undefined, asked)
    expect([applied.code, applied.stdout]).toEqual([
      0,
      expect.stringContaining(`tell all members of the partitions of ${lanes[0]}: 4 -> 6`),
    ])
    expect(JSON.parse((await deployment.run(['topics', 'plan', '--json'], undefined, asked)).stdout)).toEqual([])
    expect(await deployment.read((runtime) => layoutDifferences(runtime))).toEqual([])
  } finally {
    await deployment.close()
  }
})

it('a command leaves the topics of our own broker as another one has configured them, and makes what is missing', async () => {
  const deployment = await Deployment.open({ embedded: true })
  const DAY_MS = 86_400_000
  const retentions = (): Promise<Record<string, string | undefined>> =>
    deployment.read(async (runtime) => {
      const described = await runtime.admin.describeTopics([runtime.topics.html, runtime.topics.records])
      return Object.fromEntries(described.map(({ topic, configs }) => [topic, configs['retention.ms']]))
    })
  try {
    const made = await deployment.run(['sites', 'pause', 'a.example'], undefined, [
      'topics.retention.html=60d',
      'topics.retention.records=1d',
      'topics.partitions.urls=6',
    ])
    expect(made.code).toBe(0)
    const asMade = { 'scrape.html': String(60 * DAY_MS), 'scrape.records': String(DAY_MS) }
    expect(await retentions()).toEqual(asMade)

    // With fewer partitions and other retentions, which are nothing to these.
    for (const args of [
      ['sites', 'resume', 'a.example'],
      ['produce', 'https://a.example/'],
    ]) {
      const done = await deployment.run(args)
      expect([done.code, done.stderr]).toEqual([0, expect.not.stringContaining('topic')])
    }
    expect(await retentions()).toEqual(asMade)
    await deployment.read(async (runtime) => {
      await runtime.admin.deleteTopic(runtime.topics.outcomes)
      await eventually(async () => !(await runtime.admin.listTopics()).includes(runtime.topics.outcomes), { what: 'the topic to go' })
      expect(await layoutDifferences(runtime)).toEqual([])
    })
    expect((await deployment.run(['sites', 'pause', 'a.example'], undefined, ['topics.partitions.urls=6'])).code).toBe(0)
    await deployment.read(async (runtime) => {
      expect(await runtime.admin.partitions(runtime.topics.outcomes)).toHaveLength(6)
      expect(await layoutDifferences(runtime)).toEqual([])
    })
  } finally {
    await deployment.close()
  }
})

it('a process that works changes the topics of our own broker as it is configured and says so, and takes nothing away', async () => {
  const deployment = await Deployment.open({ embedded: true })
  const seen = new RecordingObserver()
  try {
    await deployment.run(['sites', 'pause', 'a.example'], undefined, ['topics.retention.html=60d', 'topics.retention.records=1d'])
    const found = await deployment.read(async (runtime) => {
      await prepareTopics(runtime, [])
      return runtime.admin.describeTopics([runtime.topics.html, runtime.topics.records])
    }, seen)
    expect(found.map(({ configs }) => configs['retention.ms'])).toEqual(['5184000000', '2592000000'])
    expect(seen.events.filter(({ name }) => name.startsWith('Topic'))).toEqual([
      { name: 'TopicChanged', fields: { topic: 'scrape.records', configs: 'retention.ms 86400000 -> 2592000000' } },
      { name: 'TopicLeftAsItIs', fields: { topic: 'scrape.html', configs: 'retention.ms 5184000000 -> 1209600000' } },
    ])
  } finally {
    await deployment.close()
  }
})
