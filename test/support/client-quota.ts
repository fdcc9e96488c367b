import type { KafkaAdmin } from '../../src/kafka/admin.ts'
import { kafkajsModules } from '../../src/kafka/patches/kafkajs-modules.ts'

const ALTER_CLIENT_QUOTAS = 49

interface Encoder {
  writeArray(entries: readonly Encoder[]): Encoder
  writeString(text: string): Encoder
  writeDouble(value: number): Encoder
  writeBoolean(value: boolean): Encoder
}

/** What kafkajs's cluster has beyond what the source needs of it. */
interface WithController {
  findControllerBroker(): Promise<{ readonly connectionPool: { send(request: object): Promise<Buffer> } }>
}

/** Lets a client read so many bytes a second and no more. Source: Kafka protocol, AlterClientQuotas version 0. */
export async function limitReading(admin: KafkaAdmin, clientId: string, bytesPerSecond: number): Promise<void> {
  const Encoder = kafkajsModules().load('protocol/encoder.js') as new () => Encoder
  const entity = new Encoder().writeString('client-id').writeString(clientId)
  const limit = new Encoder().writeString('consumer_byte_rate').writeDouble(bytesPerSecond).writeBoolean(false)
  const entry = new Encoder().writeArray([entity]).writeArray([limit])
  const request = {
    apiKey: ALTER_CLIENT_QUOTAS,
    apiVersion: 0,
    apiName: 'AlterClientQuotas',
    encode: async () => new Encoder().writeArray([entry]).writeBoolean(false),
  }
  const response = { decode: async (raw: Buffer) => raw, parse: async (raw: Buffer) => raw }
  const answer = await admin.session.run('limiting a client', async (cluster) => {
    const broker = await (cluster as unknown as WithController).findControllerBroker()
    return broker.connectionPool.send({ request, response })
  })
  const code = answer.readInt16BE(8)
  if (code !== 0) throw new Error(`the broker sets no quota: error ${code}`)
}
