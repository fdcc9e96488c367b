import { describe, expect, it } from 'vitest'
import { notForRecords, topicNames } from '../../../src/message/topics.ts'

describe('the topic of records', () => {
  const names = topicNames('scrape.')

  it.each(['scrape.records', 'scrape.records.shadow.x', 'my-topic', 'urls'])('may be %s', (topic) => {
    expect(notForRecords(names, topic)).toBeUndefined()
  })

  it.each([
    'scrape.urls',
    'scrape.urls.high',
    'scrape.urls.low',
    'scrape.urls.delay.1h',
    'scrape.html',
    'scrape.outcomes',
    'scrape.dead-letters',
    'scrape.control',
  ])('is none that other messages lie on: %s', (topic) => {
    expect(notForRecords(names, topic)).toMatch(/other messages/)
  })

  it.each(['', 'a b', 'a!', '.', '..', 'a'.repeat(250)])('has a name that Kafka takes, not %j', (topic) => {
    expect(notForRecords(names, topic)).toMatch(/name of a topic/)
  })
})
