import { afterAll, describe, expect, it } from 'vitest'
import { oldestWaiting } from '../../../../src/control/groups/live-lag.ts'
import { silentObserver } from '../../../../src/kernel/observe.ts'
import { testAdmin, testClient } from '../../../support/kafka.ts'
import { KafkaFixture } from '../../../support/kafka-fixture.ts'
import { uniqueName } from '../../../support/services.ts'

const kafka = new KafkaFixture(silentObserver)
const admin = testAdmin(testClient())
afterAll(() => Promise.all([kafka.close(), admin.close()]))

describe('the message that has waited longest', () => {
  it('is the first one that is still there, where retention has overtaken the group', async () => {
    const [groupId, topic] = [uniqueName('group'), await kafka.topic()]
    await kafka.produce(topic, 0, ['a', 'b', 'c', 'd'])
    const oldest = async (): Promise<string | undefined> => {
      const [lag] = await admin.lag(groupId, [topic])
      return lag === undefined ? undefined : (await oldestWaiting(admin, lag))?.value?.toString()
    }
    expect(await oldest()).toBe('a')
    await kafka.commit(groupId, topic, 0, 1n, '')
    expect(await oldest()).toBe('b')
    await kafka.deleteRecordsBelow(topic, 0, 3n)
    expect(await oldest()).toBe('d')
    await kafka.commit(groupId, topic, 0, 4n, '')
    expect(await oldest()).toBeUndefined()
  })
})
