import { counter, type EventDefinition, histogram, SECONDS } from './event-definition.ts'

/** Labels of what an extractor gives. */
const YIELD = ['extractor', 'version', 'domain'] as const

/**
 * The catalogue of events. One definition gives the log line (level, text) and the metric (name, kind, labels), so that the two
 * can't drift. Code emits events; it does not call a logger or a counter.
 *
 * Rules: names are past tense; labels are bounded (topic, partition, stage, kind, reason, code, extractor), never a URL, a host or
 * a text; `domain` stands for the few sites that give most pages, and `other`. `fields` beyond the labels go to the log line only. info is
 * for lifecycle and the operator's own actions: a healthy hour is silent at warn. That something goes on has the level of its pause.
 */
export const EVENTS = {
  // service life
  ServiceStopping: { level: 'info', message: 'stopping' },
  // embedded broker
  BrokerStarting: { level: 'info', message: 'starting Apache Kafka' },
  BrokerStartSlow: { level: 'warn', message: 'Apache Kafka still starts: logs may have to be read through, or the machine is busy' },
  BrokerStarted: { level: 'info', message: 'Apache Kafka is up' },
  BrokerStopped: { level: 'info', message: 'Apache Kafka has stopped' },
  BrokerRepaired: { level: 'warn', message: 'the data folder of Apache Kafka was repaired' },
  BrokerLost: { level: 'error', message: 'Apache Kafka has ended and is not started again' },
  BrokerPortChanged: { level: 'warn', message: 'the port of the last time is taken by another program: Apache Kafka uses another one' },
  DependencyInstalling: { level: 'info', message: 'installing a dependency' },
  // topics of our own broker
  TopicChanged: { level: 'warn', message: 'a topic was changed to what the configuration says' },
  TopicLeftAsItIs: { level: 'warn', message: 'a topic is left as it is: `millrace topics apply` would take something away' },
  // Kafka client
  KafkaClientLogged: { level: 'debug', message: 'kafkajs' },
  GroupJoined: {
    level: 'debug',
    message: 'joined the group',
    metric: counter('group_joins_total', 'Joins of a consumer group.', ['group']),
  },
  GroupMemberEvicted: { level: 'info', message: 'a member whose process has ended was taken out of its group' },
  PartitionsLost: { level: 'debug', message: 'partitions went to another member' },
  ConsumerRestarted: {
    level: 'info',
    message: 'the consumer restarted',
    metric: counter('consumer_restarts_total', 'Restarts of a consumer after a crash.', ['group']),
  },
  OffsetsCommitted: {
    level: 'debug',
    message: 'committed',
    metric: counter('commits_total', 'Commits that the broker confirmed.', ['group']),
  },
  CommitRefused: {
    level: 'debug',
    message: 'a commit was refused',
    metric: counter('commits_refused_total', 'Commits that the broker refused.', ['group', 'reason']),
    throttleMs: 10_000,
    throttleBy: 'group',
  },
  OffsetMapDropped: {
    level: 'warn',
    message: 'the map of completed offsets in the commit metadata was unreadable and is ignored',
    metric: counter('offset_maps_dropped_total', 'Commit metadata that could not be used.', ['group', 'reason']),
  },
  OffsetOutOfRange: {
    level: 'error',
    message: 'the committed offset lies outside the log',
    metric: counter('offsets_out_of_range_total', 'Committed offsets outside the log.', ['group']),
  },
  BatchUnread: {
    level: 'error',
    message: 'passed over a batch of messages that can not be read; it stands as one message that is answered as a bad one',
    metric: counter('batches_unread_total', 'Batches of messages that could not be read, and were passed over as one bad message.', [
      'group',
      'topic',
    ]),
  },
  PartitionPaused: {
    level: 'debug',
    message: 'paused a partition: its window is full',
    metric: counter('partition_pauses_total', 'Pauses of a partition with a full window.', ['group']),
  },
  SendRetried: {
    level: 'warn',
    message: 'a send was not acknowledged and is repeated',
    metric: counter('send_retries_total', 'Sends repeated.', ['reason']),
    throttleMs: 10_000,
    throttleBy: 'reason',
  },
  BlobWritten: {
    level: 'debug',
    message: 'a body went to the blob store',
    metric: counter('blobs_written_total', 'Bodies written to the blob store.'),
  },
  BlobStoreRetried: {
    level: 'warn',
    message: 'the blob store did not take a body, which is tried again',
    metric: counter('blob_retries_total', 'Writes to the blob store repeated.'),
    throttleMs: 10_000,
  },
  BlobStorePaused: { level: 'warn', message: 'the blob store does not answer, or is full: what needs it waits', throttleMs: 10_000 },
  BlobStoreResumed: { level: 'warn', message: 'the blob store answers again', throttleMs: 10_000 },
  ReadRetried: {
    level: 'warn',
    message: 'a topic can not be read just now and is tried again',
    metric: counter('read_retries_total', 'Reads of topics repeated.', ['reason']),
    throttleMs: 10_000,
    throttleBy: 'reason',
  },
  PartitionOffline: {
    level: 'warn',
    message: 'a partition has no leader: nobody reads or writes it until a broker that holds it is back; the others go on',
    metric: counter('offline_partition_looks_total', 'Looks that found an offline partition of a topic in use, which has no leader.', [
      'topic',
    ]),
    throttleMs: 60_000,
    throttleBy: 'place',
  },
  TransactionCommitted: {
    level: 'debug',
    message: 'transaction committed',
    metric: counter('transactions_total', 'Transactions committed.', ['group']),
  },
  OffsetAwaited: {
    level: 'warn',
    message: 'a partition waits: the end of a transaction before is not known yet',
    metric: counter('offset_waits_total', 'Partitions that had to wait for the end of a transaction before them.', ['group']),
  },
  OffsetUnstable: { level: 'warn', message: 'a transaction that moves an offset has not ended in time: the offset before it is taken' },
  TransactionEndRestored: { level: 'warn', message: 'a transaction whose end was lost by the broker was ended once more, as it had ended' },
  OffsetRestored: { level: 'warn', message: 'the offset of a committed transaction was lost by the broker: its messages tell it' },
  TransactionFailed: {
    level: 'warn',
    message: 'a transaction failed and is repeated from the committed offset',
    metric: counter('transactions_failed_total', 'Transactions that failed.', ['group']),
    throttleMs: 10_000,
    throttleBy: 'group',
  },
  // tasks and outcomes
  TaskAccepted: { level: 'debug', message: 'task taken', metric: counter('tasks_total', 'Tasks decoded.', ['lane']) },
  OutcomeWritten: { level: 'debug', message: 'outcome', metric: counter('outcomes_total', 'Outcomes written.', ['kind', 'reason']) },
  RepeatSkipped: {
    level: 'debug',
    message: 'a task that had been finished came again and was skipped',
    metric: counter('repeats_skipped_total', 'Copies of finished tasks that were skipped.', []),
  },
  TaskSpilled: {
    level: 'debug',
    message: 'a task waits in a delay topic',
    metric: counter('tasks_spilled_total', 'Tasks moved to a delay topic since they would wait too long.', ['reason']),
  },
  TaskMoved: {
    level: 'debug',
    message: 'a task was sent to the partition it belongs to',
    metric: counter('tasks_moved_total', 'Tasks found in a wrong partition.', []),
  },
  DeadLetterWritten: {
    level: 'warn',
    message: 'dead letter',
    metric: counter('dead_letters_total', 'Dead letters written.', ['stage', 'code']),
    throttleMs: 10_000,
    throttleBy: 'code',
  },
  // fetching
  RequestFinished: {
    level: 'debug',
    message: 'request',
    metric: histogram('request_duration_seconds', 'From the start of a request to the end of its body.', ['kind'], 'seconds', SECONDS),
  },
  BytesFetched: { level: 'debug', message: 'bytes', metric: counter('response_bytes_total', 'Bytes received.', [], 'bytes') },
  BodyMislabelled: {
    level: 'debug',
    message: 'a body is not in the coding that its headers name; kept as it came',
    metric: counter('bodies_mislabelled_total', 'Bodies that were not in the coding that their headers name.'),
  },
  QueueWaited: {
    level: 'debug',
    message: 'queue wait',
    metric: histogram('queue_wait_seconds', 'From the reading of a task to the start of its request.', ['lane'], 'seconds', SECONDS),
  },
  ConcurrencyAdapted: {
    level: 'info',
    message: 'requests at the same time were adapted to how quickly sites answer, each against what is usual for it',
    metric: {
      name: 'fetch_concurrency_limit',
      kind: 'gauge',
      help: 'Requests at the same time that fetch allows itself.',
      labels: [],
      value: 'limit',
    },
    throttleMs: 30_000,
  },
  LowLaneHeld: {
    level: 'warn',
    message: 'most requests are retries: the low lane keeps a tenth of the places until that is over',
    metric: counter('low_lane_holds_total', 'Times that the low lane was held back since retries dominated.'),
  },
  LowLaneReleased: { level: 'warn', message: 'retries do not dominate any more: the low lane is free again' },
  LimiterWaited: {
    level: 'debug',
    message: 'limiter',
    metric: counter('limiter_waits_total', 'Answers of the limiter that said wait.', ['reason']),
  },
  RobotsRead: { level: 'debug', message: 'robots.txt read', metric: counter('robots_reads_total', 'Readings of robots.txt.', ['verdict']) },
  ChallengeMet: {
    level: 'info',
    message: 'a wall against robots answered in the place of a site: its URL goes to the slow lane',
    metric: counter('challenges_total', 'Answers of walls against robots, by vendor.', ['vendor']),
    throttleMs: 60_000,
    throttleBy: 'host',
  },
  ProxyTakenOut: {
    level: 'warn',
    message: 'a proxy does not work and is left out for a while',
    metric: counter('proxies_taken_out_total', 'Times a proxy was left out for a while, by its address and why.', ['proxy', 'reason']),
  },
  ProxyReturned: { level: 'warn', message: 'a proxy works again' },
  CookiesRefused: {
    level: 'debug',
    message: 'cookies that break the rules were passed over',
    metric: counter('cookies_refused_total', 'Cookies that break the rules of RFC 6265, or are not for their site.', [], 'count'),
  },
  SiteBackedOff: {
    level: 'info',
    message: 'a site asked for less',
    metric: counter('site_backoffs_total', 'Back-offs of a site.', ['reason']),
    throttleMs: 30_000,
    throttleBy: 'key',
  },
  SiteSlowed: {
    level: 'info',
    message: 'a site bears less than its pace: it is asked less',
    metric: counter('site_slowdowns_total', 'Times that a site was asked less since it answered 429 or 503 or got slow.', []),
    throttleMs: 30_000,
    throttleBy: 'key',
  },
  SiteBreakerOpened: {
    level: 'warn',
    message: 'a site does not answer: it is parked, and tried again later',
    metric: counter('site_breaker_openings_total', 'Sites parked since they did not answer, and parkings after a vain try.', []),
    throttleMs: 10_000,
    throttleBy: 'key',
  },
  SiteBreakerClosed: {
    level: 'warn',
    message: 'a parked site answers again',
    metric: counter('site_breaker_closings_total', 'Parked sites that answered again.', []),
  },
  SitesReasserted: { level: 'info', message: 'the state store had lost its memory: it was told the back-offs that are known here' },
  SiteParked: {
    level: 'info',
    message: 'a site asks for a longer crawl delay than politeness.default.crawlDelayMax: it is parked between its requests',
    throttleMs: 600_000,
    throttleBy: 'key',
  },
  StorePaused: {
    level: 'warn',
    message: 'the state store does not answer: fetching pauses',
    throttleMs: 10_000,
    metric: counter('store_pauses_total', 'Pauses since the state store did not answer.', []),
  },
  StoreResumed: { level: 'warn', message: 'the state store answers again' },
  StateStoreLost: {
    level: 'warn',
    message: 'the connection to the state store was lost',
    throttleMs: 10_000,
    metric: counter('state_store_losses_total', 'Losses of the connection to the state store.', []),
  },
  StateStoreFound: { level: 'warn', message: 'the connection to the state store is back' },
  StateTimeResumed: { level: 'info', message: 'the machine was restarted: what was left of each wait is waited for from now on' },
  StateReopened: {
    level: 'info',
    message: 'the state file was opened anew: another process had opened it in the middle of a commit',
    throttleMs: 60_000,
  },
  DeadLeasesEnded: { level: 'info', message: 'leases of processes that are gone were ended', throttleMs: 10_000 },
  DiskLow: { level: 'error', message: 'less than the free space that fetching needs: it pauses', throttleMs: 60_000 },
  DiskFreed: { level: 'error', message: 'there is the free space that fetching needs: it goes on' },
  BrokerLookFailed: { level: 'warn', message: 'the broker could not be looked after; the next look is in a second', throttleMs: 60_000 },
  BrokerRests: { level: 'error', message: 'the broker rests, and is started again by itself when there is space', throttleMs: 60_000 },
  BrokerBack: { level: 'error', message: 'the broker that rested runs again' },
  DiskUnknown: { level: 'warn', message: 'the free space of the data folder can not be read', throttleMs: 600_000 },
  UserAgentMissing: { level: 'warn', message: 'no fetch.userAgent is set: sites can not tell who asks, nor write to you' },
  // extraction
  PartitionRepeated: {
    level: 'warn',
    message: 'a partition begins again from its committed offset, once that is known',
    throttleMs: 10_000,
    throttleBy: 'group',
  },
  PromotionHeld: {
    level: 'warn',
    message: 'a replay in place works with another version than the one that is promoted: that one begins when the replay has ended',
  },
  PromotionPassedOver: { level: 'warn', message: 'the promoted version has no file here, and another one works: give its file' },
  ChangeOverRetried: {
    level: 'warn',
    message: 'another version of an extractor can not begin just now and is tried again: its group does not extract meanwhile',
  },
  RecordsWritten: { level: 'debug', message: 'records', metric: counter('records_total', 'Records written.', ['extractor'], 'count') },
  PageExtracted: {
    level: 'debug',
    message: 'page extracted',
    metric: histogram('extract_duration_seconds', 'Parse and extraction of a page.', [], 'seconds', SECONDS),
  },
  PagePassedOver: {
    level: 'debug',
    message: 'no extractor matches',
    metric: counter('pages_passed_over_total', 'Pages that no extractor matched.', []),
  },
  ExtractionProcessReplaced: {
    level: 'warn',
    message: 'an extraction process was replaced',
    metric: counter('extract_processes_replaced_total', 'Extraction processes replaced.', ['reason']),
  },
  PagesRead: {
    level: 'debug',
    message: 'pages read',
    metric: counter('extract_pages_total', 'Pages that an extractor read: records, none or failed.', [...YIELD, 'result'], 'count'),
  },
  RecordsGiven: {
    level: 'debug',
    message: 'records given',
    metric: counter('extract_records_total', 'Records that an extractor gave.', YIELD, 'count'),
  },
  FieldsNull: {
    level: 'debug',
    message: 'fields that are null',
    metric: counter('extract_field_nulls_total', 'Records in which a field is null.', [...YIELD, 'field'], 'count'),
  },
  FieldValuesInvalid: {
    level: 'debug',
    message: 'values that do not have the type of their field',
    metric: counter('extract_invalid_values_total', 'Values that do not have the type of their field.', [...YIELD, 'field'], 'count'),
  },
  JsonLdNoted: {
    level: 'debug',
    message: 'a page has JSON-LD that is none: repaired, or left out as broken',
    metric: counter('extract_jsonld_faults_total', 'Blocks of JSON-LD that are none, by kind: repaired or broken.', ['kind'], 'count'),
  },
  ReplayPartitionBegan: { level: 'info', message: 'replay of a partition begins' },
  ReplayPartitionDone: { level: 'info', message: 'replay of a partition done' },
  ReplayCloseFailed: { level: 'warn', message: 'a replay that is done could not be closed; the next one of the group does it' },
  ReplayRefused: { level: 'warn', message: 'replay refused' },
  // frontier
  PageSkipped: {
    level: 'warn',
    message: 'the links of a page could not be followed; the page is kept as a dead letter',
    throttleMs: 10_000,
    metric: counter('frontier_pages_skipped_total', 'Pages whose links could not be followed; each is a dead letter.', []),
  },
  FrontierRetried: {
    level: 'warn',
    message: 'a store or the broker does not answer the frontier; the page is tried again',
    throttleMs: 10_000,
  },
  SiteTrapped: {
    level: 'warn',
    message: 'a site leads to endless paths; links beyond the bounds are not followed',
    throttleMs: 600_000,
    throttleBy: 'host',
  },
  LinksPassedOver: { level: 'warn', message: 'a page has more links than are followed', throttleMs: 600_000, throttleBy: 'host' },
  LinksFound: { level: 'debug', message: 'links', metric: counter('links_total', 'Links by what became of them.', ['verdict'], 'count') },
  // control and state
  CommandRead: { level: 'debug', message: 'command' },
  CommandUndecodable: {
    level: 'warn',
    message: 'a message on the control topic is no command and was passed over',
    metric: counter('commands_undecodable_total', 'Messages on the control topic that are no commands.'),
  },
  RecordUndecodable: {
    level: 'warn',
    message: 'a message on a topic of records is no record that can be read and was passed over',
    metric: counter('records_undecodable_total', 'Messages on topics of records that could not be read.', ['topic', 'code']),
    throttleMs: 10_000,
    throttleBy: 'topic',
  },
  KeptSinceUnknown: {
    level: 'warn',
    message: 'how far back a topic reaches could not be seen: its pages are fetched whole, as if they had changed',
    throttleMs: 60_000,
  },
  LagUnknown: { level: 'warn', message: 'how far a group is behind can not be seen: it has no gauges meanwhile', throttleMs: 60_000 },
  SchemaUnannounced: { level: 'warn', message: 'this user may not announce a schema: older releases may not read its messages' },
  SchemaAwaited: { level: 'warn', message: 'the schema registry does not have a schema yet: it is asked again', throttleMs: 10_000 },
  RegistryPaused: { level: 'warn', message: 'the schema registry does not answer: what needs it waits', throttleMs: 10_000 },
  RegistryResumed: { level: 'warn', message: 'the schema registry answers again', throttleMs: 10_000 },
  CrawlsForgotten: {
    level: 'info',
    message: 'crawls that ended long ago were forgotten',
    metric: counter('crawls_forgotten_total', 'Crawls dropped from the state store since they ended long ago.', [], 'count'),
  },
  OpenTasksDropped: {
    level: 'warn',
    message:
      'tasks of a crawl were open in the state store and lie on no topic: they are no longer waited for. The store came back older than the topics, or the topics have lost messages',
    metric: counter('open_tasks_dropped_total', 'Tasks that were open in the state store and lay on no topic.', [], 'count'),
  },
  RetentionFailed: { level: 'warn', message: 'what is old can not be deleted; it is tried again', throttleMs: 60_000, throttleBy: 'what' },
  WorkerSocketFailed: { level: 'warn', message: 'no socket for commands could be made: explain and status will know less of this process' },
  HeartbeatFailed: { level: 'warn', message: 'the heartbeat of this worker could not be stored', throttleMs: 30_000 },
} as const satisfies Record<string, EventDefinition>

export type EventName = keyof typeof EVENTS
