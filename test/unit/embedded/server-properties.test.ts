import { describe, expect, it } from 'vitest'
import { dockerRunArgs, environmentName } from '../../../src/embedded/docker-engine.ts'
import { brokerProperties, parseProperties, renderProperties } from '../../../src/embedded/server-properties.ts'

describe('the configuration of the embedded broker', () => {
  const properties = brokerProperties({ port: 24_001, controllerPort: 24_002 })

  it('is one node on loopback alone', () => {
    expect(properties.listeners).toBe('PLAINTEXT://127.0.0.1:24001,CONTROLLER://127.0.0.1:24002')
    expect(properties['advertised.listeners']).toBe('PLAINTEXT://127.0.0.1:24001')
    expect(properties['controller.quorum.voters']).toBe('1@127.0.0.1:24002')
  })

  it('never lets committed offsets expire, and never makes topics by itself', () => {
    expect(properties['offsets.retention.minutes']).toBe(String(2 ** 31 - 1))
    expect(properties['auto.create.topics.enable']).toBe('false')
  })

  it('takes a page of 10 MiB with its envelope', () => {
    expect(Number(properties['message.max.bytes'])).toBeGreaterThan(11 * 1024 * 1024)
  })

  it('comes back from the text it is written as', () => {
    expect(parseProperties(renderProperties(properties))).toEqual(properties)
  })

  it('escapes what Java would read as something else', () => {
    expect(renderProperties({ 'a b': 'c:\\d é' })).toBe('a\\ b=c:\\\\d \\u00e9\n')
  })
})

describe('a properties file of Kafka', () => {
  it('is read past comments, blank lines and spaces', () => {
    expect(parseProperties('#\n#Sat Nov 28\n\nnode.id=1\n cluster.id = abc= \nversion:1\nnonsense\n')).toEqual({
      'node.id': '1',
      'cluster.id': 'abc=',
      version: '1',
    })
  })
})

describe('the container', () => {
  it('publishes the port on loopback alone and keeps its data in a volume of the cluster', () => {
    const args = dockerRunArgs('abcdefghijklmnopqrstuv', { port: 24_001, controllerPort: 24_002 }, '1-2')
    expect(args.join(' ')).toContain('--publish 127.0.0.1:24001:24001 --volume millrace-abcdefghijklmnopqrstuv:/var/lib/kafka/data')
    expect(args).toContain('KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://127.0.0.1:24001')
    expect(args).toContain('CLUSTER_ID=abcdefghijklmnopqrstuv')
    expect(args.at(-1)).toBe('apache/kafka:4.4.0')
  })

  it('gets its configuration under the names that the image reads', () => {
    expect(environmentName('offsets.topic.num.partitions')).toBe('KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS')
    expect(environmentName('a_b-c.d')).toBe('KAFKA_A__B___C_D')
  })
})
