import type { OutgoingMessage } from './message.ts'

/** What stages need of a producer; the durable one below is the implementation. */
export interface MessageProducer {
  /**
   * Resolves when every message is acknowledged by all in-sync replicas. Messages of one call to one partition keep their order.
   * Resends with back-off until acknowledged; rejects only with KAFKA_MESSAGE_TOO_LARGE (before anything of the call was sent),
   * ABORTED (the signal, or the producer was stopped at once) or an error that no resend can mend.
   */
  send(messages: readonly OutgoingMessage[], options?: { signal?: AbortSignal }): Promise<void>
}
