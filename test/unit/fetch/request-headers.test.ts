import { describe, expect, it } from 'vitest'
import { requestHeaders } from '../../../src/fetch/request-headers.ts'

describe('the headers of a request', () => {
  it('are those of the task before our own, names in lower case', () => {
    const headers = requestHeaders({ Accept: 'text/csv', 'X-Token': 't', 'User-Agent': 'mine' }, 'millrace/1')
    expect(headers).toMatchObject({ accept: 'text/csv', 'x-token': 't', 'user-agent': 'mine' })
  })

  it('name the codings that we undo, whatever the task says', () => {
    expect(requestHeaders({ 'accept-encoding': 'compress' }, 'millrace/1')['accept-encoding']).toContain('gzip, br')
  })

  it.each(['Connection', 'Transfer-Encoding', 'Content-Length', 'Expect', 'Upgrade', 'Proxy-Authorization', 'TE'])(
    'leave %s to the connection',
    (name) => expect(Object.keys(requestHeaders({ [name]: 'x' }, 'millrace/1'))).not.toContain(name.toLowerCase()),
  )
})
