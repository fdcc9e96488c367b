import { describe, expect, it } from 'vitest'
import { failureOf } from '../../../../src/control/records/stored-records.ts'
import { HEADER } from '../../../../src/message/header-names.ts'
import { readDeadLetter } from '../../../../src/message/read-dead-letter.ts'

const of = { extractor: 'book:2', topic: 'p.html' }
const headers = {
  [HEADER.extractor]: 'book:2',
  [HEADER.errorCode]: 'EXTRACT_TIMEOUT',
  [HEADER.origTopic]: 'p.html',
  [HEADER.origPartition]: '3',
  [HEADER.origOffset]: '9007199254740993',
}

describe('the page that a dead letter of an extractor is about', () => {
  it('is the one that its headers name', () => {
    const source = { topic: 'p.html', partition: 3, offset: 9_007_199_254_740_993n }
    expect(failureOf(readDeadLetter(headers), of)).toEqual({ source, code: 'EXTRACT_TIMEOUT', replayId: undefined })
    expect(failureOf(readDeadLetter({ ...headers, [HEADER.extractor]: 'book:1' }), of)).toBeUndefined()
    expect(failureOf(readDeadLetter({ ...headers, [HEADER.origTopic]: 'p.urls' }), of)).toBeUndefined()
  })

  it.each([HEADER.origOffset, HEADER.origPartition])('is none where %s is damaged', (name) => {
    expect(failureOf(readDeadLetter({ ...headers, [name]: '12x' }), of)).toBeUndefined()
  })
})
