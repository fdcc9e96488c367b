import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import { evictDeadMembers } from '../../../../src/control/groups/dead-members.ts'
import { groupNames } from '../../../../src/message/topics.ts'
import { eventually } from '../../../support/eventually.ts'
import { testAdmin, testClient, testTopic } from '../../../support/kafka.ts'
import { recordingObserver } from '../../../support/kafka-fixture.ts'
import { brokers, uniqueName } from '../../../support/services.ts'

const CHILD = fileURLToPath(new URL('../../../support/group-member-child.ts', import.meta.url))

const client = testClient()
const admin = testAdmin(client)
const children: ChildProcess[] = []

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

afterEach(async () => {
  await Promise.all(children.splice(0).map(kill))
})
afterAll(() => admin.close())

async function member(groupId: string, topic: string): Promise<ChildProcess> {
  const child = fork(CHILD, [brokers().join(','), groupId, topic], { execArgv: ['--import', 'tsx'] })
  children.push(child)
  await once(child, 'message')
  return child
}

async function clientIds(groupId: string): Promise<string[]> {
  return (await admin.describeGroup(groupId)).members.map(({ clientId }) => clientId)
}

function surroundings(isEmbedded: boolean) {
  const prefix = `${uniqueName('evict')}.`
  const { observer, events } = recordingObserver()
  const { config } = loadConfig({ sets: ['extract.groups={"books":["book"]}'], flags: {}, environment: {} })
  return { runtime: { isEmbedded, groups: groupNames(prefix), admin, config, observer }, events }
}

describe('members whose processes were killed', () => {
  it('are taken out of every group of ours at once, and the living stay', async () => {
    const { runtime, events } = surroundings(true)
    const topic = await testTopic(admin, 'evict', 2)
    const { fetch } = runtime.groups
    const named = runtime.groups.extract('books')
    const [dead, deadNamed] = await Promise.all([member(fetch, topic), member(named, topic)])
    await Promise.all([kill(dead), kill(deadNamed)])
    // The broker has not noticed anything: their sessions last a minute.
    expect(await clientIds(fetch)).toHaveLength(1)
    await evictDeadMembers(runtime)
    expect(await clientIds(fetch)).toEqual([])
    expect(await clientIds(named)).toEqual([])
    expect(events.map(({ event, fields }) => [event, fields.group])).toEqual([
      ['GroupMemberEvicted', fetch],
      ['GroupMemberEvicted', named],
    ])

    // Whoever comes next need not wait for anybody, and is not mistaken for one of the dead.
    await member(fetch, topic)
    await eventually(async () => (await admin.describeGroup(fetch)).state === 'Stable')
    await evictDeadMembers(runtime)
    expect(await clientIds(fetch)).toHaveLength(1)
    expect(events).toHaveLength(2)
  })

  it('are left alone on a given broker, where a process may run on any machine', async () => {
    const { runtime, events } = surroundings(false)
    const topic = await testTopic(admin, 'evict')
    await kill(await member(runtime.groups.delay, topic))
    await evictDeadMembers(runtime)
    expect(await clientIds(runtime.groups.delay)).toHaveLength(1)
    expect(events).toEqual([])
  })
})
