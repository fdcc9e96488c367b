import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { applyTopics } from '../../../src/control/runtime/topics.ts'
import { overrideSite } from '../../../src/control/sites/sites.ts'
import { subject } from '../../../src/message/command.ts'
import { registryFrame } from '../../../src/message/framing.ts'
import { Deployment } from '../../support/deployment.ts'

let deployment: Deployment
beforeEach(async () => {
  deployment = await Deployment.open()
})
afterEach(() => deployment.close())

describe('a command without the registry of the others', () => {
  it('writes nothing over what they have said of a site, or over their layout', async () => {
    await deployment.read(async (runtime) => {
      const { control: topic } = runtime.topics
      const value = registryFrame(7, Buffer.from('of their registry'))
      const theirs = [subject.site('shop.example'), subject.layout].map((key) => ({ topic, partition: 0, key, value }))
      await (await runtime.producer()).send(theirs)
      const refused = { code: 'CONTROL_UNREADABLE', exitCode: 2, message: expect.stringContaining('no registry is configured') }
      await expect(overrideSite(runtime, 'shop.example', { paused: undefined })).rejects.toMatchObject(refused)
      await expect(applyTopics(runtime)).rejects.toMatchObject(refused)
      await overrideSite(runtime, 'other.example', { paused: true })
      // Whoever knows better takes it away.
      await (await runtime.producer()).send([{ topic, partition: 0, key: subject.site('shop.example'), value: null }])
      await overrideSite(runtime, 'shop.example', { paused: true })
    })
  })
})
