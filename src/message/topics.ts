import type { Lane } from './generated/types.ts'

/** Names of all topics under one prefix; the prefix ends with its own separator. */
export interface TopicNames {
  readonly urls: Readonly<Record<Lane, string>>
  /** From the shortest delay to the longest. */
  readonly delays: readonly DelayTopic[]
  readonly html: string
  readonly records: string
  readonly outcomes: string
  readonly deadLetters: string
  readonly control: string
}

export interface DelayTopic {
  readonly topic: string
  readonly delayMs: number
}

export const LANES: readonly Lane[] = ['high', 'normal', 'low']

const DELAYS: readonly (readonly [string, number])[] = [
  ['10s', 10_000],
  ['1m', 60_000],
  ['10m', 600_000],
  ['1h', 3_600_000],
]

export function topicNames(prefix: string): TopicNames {
  return {
    urls: { high: `${prefix}urls.high`, normal: `${prefix}urls`, low: `${prefix}urls.low` },
    delays: DELAYS.map(([name, delayMs]) => ({ topic: `${prefix}urls.delay.${name}`, delayMs })),
    html: `${prefix}html`,
    records: `${prefix}records`,
    outcomes: `${prefix}outcomes`,
    deadLetters: `${prefix}dead-letters`,
    control: `${prefix}control`,
  }
}

/** The topics of tasks that may be asked for now, by lane. */
export function laneTopics({ urls }: Pick<TopicNames, 'urls'>): readonly string[] {
  return LANES.map((lane) => urls[lane])
}

/** The topics of tasks that wait, from the shortest delay to the longest. */
export function delayTopics({ delays }: Pick<TopicNames, 'delays'>): readonly string[] {
  return delays.map(({ topic }) => topic)
}

/** Every topic with tasks on it. */
export function taskTopics(names: Pick<TopicNames, 'urls' | 'delays'>): readonly string[] {
  return [...laneTopics(names), ...delayTopics(names)]
}

/** Shape: undefined for a topic that is none of a lane. */
export function laneOf({ urls }: Pick<TopicNames, 'urls'>, topic: string): Lane | undefined {
  return LANES.find((lane) => urls[lane] === topic)
}

/** Where the records of an extractor go: the topic that its file names, or the common one. */
export function recordsTopicOf({ topic }: { readonly topic?: string | undefined }, { records }: Pick<TopicNames, 'records'>): string {
  return topic ?? records
}

/** Topic of the records of a shadow replay, where no other one is named. */
export function shadowTopicOf({ records }: Pick<TopicNames, 'records'>, replayId: string): string {
  return `${records}.shadow.${replayId}`
}

/** Why records may not go to a topic; undefined: they may. Where other messages lie they would be taken for those. */
export function notForRecords(names: TopicNames, topic: string): string | undefined {
  if (!/^(?!\.\.?$)[A-Za-z0-9._-]{1,249}$/.test(topic)) return 'the name of a topic has letters, digits, dots, dashes and underscores'
  const others = [...taskTopics(names), names.html, names.outcomes, names.deadLetters, names.control]
  return others.includes(topic) ? 'other messages of this deployment lie there' : undefined
}

/** Consumer groups under one prefix. */
export interface GroupNames {
  readonly fetch: string
  readonly delay: string
  readonly frontier: string
  /** Of the commands that deal with dead letters: nobody reads in it, it makes their transactions shut each other out. */
  readonly deadLetters: string
  /** Group of a set of extractors; `undefined` is the one of all. */
  readonly extract: (name?: string) => string
  readonly replay: (replayId: string) => string
}

export function groupNames(prefix: string): GroupNames {
  return {
    fetch: `${prefix}fetch`,
    delay: `${prefix}delay`,
    frontier: `${prefix}frontier`,
    deadLetters: `${prefix}dead-letters`,
    extract: (name) => (name === undefined ? `${prefix}extract` : `${prefix}extract.${name}`),
    replay: (replayId) => `${prefix}replay.${replayId}`,
  }
}
