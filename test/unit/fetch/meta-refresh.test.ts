import { describe, expect, it } from 'vitest'
import { metaRefresh } from '../../../src/fetch/meta-refresh.ts'

const pageUrl = new URL('http://a.example/a/b')
const refresh = (html: string, charset = 'UTF-8') => metaRefresh(html, pageUrl, charset)
const meta = (content: string) => `<head><meta http-equiv="Refresh" content="${content}"></head>`

describe('the refresh of a page', () => {
  it.each([
    ['0; URL=\n http://example.test/i.php', 0, 'http://example.test/i.php'],
    ['5;/next', 5, '/next'],
    ["0;url='a b'", 0, 'a b'],
    ["0;url='a b' c", 0, 'a b'],
    ['0;url=&quot;x&quot;', 0, 'x'],
    ["0;url='x", 0, 'x'],
    ['0;url=a&amp;b', 0, 'a&b'],
    ['0,url=x', 0, 'x'],
    ['0 ; Url = x', 0, 'x'],
    ['0;;x', 0, ';x'],
    ['3 x', 3, 'x'],
    ['.5;url=x', 0, 'x'],
    ['1.9;url=x', 1, 'x'],
    ['1.2.3;x', 1, 'x'],
    ['  7 ;x', 7, 'x'],
    ['0;url', 0, 'url'],
    ['0;urlx', 0, 'urlx'],
    ['99999999999999999999;x', 1e20, 'x'],
  ])('C051: %j is %d s to %j', (content, seconds, location) => {
    expect(refresh(meta(content))).toEqual({ delayMs: seconds * 1_000, location })
  })

  it.each(['5', '', ' ', 'x;url=y', '-1;url=x', '5x', '0;', '0;url=', "0;url=''", 'url=x', ';x'])('%j leads nowhere', (content) => {
    expect(refresh(meta(content))).toBeUndefined()
  })

  it.each([
    ['a comment', '<!-- <meta http-equiv=refresh content="0;url=/c"> -->'],
    ['an open comment', '<!-- <meta http-equiv=refresh content="0;url=/c">'],
    ['a script', `<script>var t='<meta http-equiv=refresh content="0;url=/s">'</script>`],
    ['a style', '<style><meta http-equiv=refresh content="0;url=/s"></style>'],
    ['a title', '<title><meta http-equiv=refresh content="0;url=/s"></title>'],
    ['a text field', '<textarea><meta http-equiv=refresh content="0;url=/s"></textarea>'],
    ['a noscript', '<noscript><p><meta http-equiv=refresh content="0;url=/n"></noscript>'],
    ['a noscript that is never closed', '<noscript><meta http-equiv=refresh content="0;url=/n">'],
    ['a template that holds another end tag', '<template></noscript><meta http-equiv=refresh content="0;url=/t"></template>'],
    ['templates in one another', '<template><template></template><meta http-equiv=refresh content="0;url=/t"></template>'],
    ['a template', '<template><meta http-equiv=refresh content="0;url=/t"></template>'],
    ['a frame', '<iframe><meta http-equiv=refresh content="0;url=/f"></iframe>'],
    ['the text for browsers without frames', '<noframes><meta http-equiv=refresh content="0;url=/f"></noframes>'],
    ['an attribute', '<p title=\'<meta http-equiv=refresh content="0;url=/a">\'>'],
    ['another equivalent', '<meta http-equiv=x-refresh content="0;url=/a">'],
    ['a name', '<meta name=refresh content="0;url=/a"> http-equiv'],
    ['nothing to read', '<meta http-equiv=refresh>'],
  ])('C053: within %s is none', (_about, html) => {
    expect(refresh(html)).toBeUndefined()
  })

  it('leads where the letters of its query are in the encoding of the page, below a base too', () => {
    expect(refresh(meta('0;url=/т?q=т'), 'windows-1251')?.location).toBe('/т?q=%F2')
    expect(refresh(`<base href="/dir/">${meta('0;url=?q=т')}`, 'windows-1251')?.location).toBe('http://a.example/dir/?q=%F2')
  })

  it('is seen behind what hides others', () => {
    const hidden = '<!-- http-equiv --><noscript><meta http-equiv=refresh content="0;url=/n"></noscript><script>"<noscript>"</script>'
    expect(refresh(`${hidden}<body><META HTTP-EQUIV=REFRESH CONTENT='0;URL=/y'>`)).toEqual({ delayMs: 0, location: '/y' })
  })

  it('is the first that can be read, a reload included', () => {
    expect(refresh(meta('nonsense') + meta('1;x') + meta('2;y'))).toEqual({ delayMs: 1_000, location: 'x' })
    expect(refresh(meta('60') + meta('0;x'))).toBeUndefined()
  })

  it.each([
    ['http://b.example/deep/', 'http://b.example/deep/x'],
    ['/deep/', 'http://a.example/deep/x'],
    ['c/', 'http://a.example/a/c/x'],
    ['http://[', 'x'],
  ])('is resolved against the base %j', (base, location) => {
    expect(refresh(`<svg><base href="/s/"/></svg><base href="${base}"><base href="/second/">${meta('0;url=x')}`)?.location).toBe(location)
  })

  it('is not looked for far down, and costs no more than the length of the page', () => {
    expect(refresh('x'.repeat(70_000) + meta('0;x'))).toBeUndefined()
    const before = process.cpuUsage()
    refresh(`<meta http-equiv=refresh content="0${' '.repeat(60_000)}x">`)
    refresh(`http-equiv${'<noscript>'.repeat(6_000)}`)
    refresh(`http-equiv${'<b>'.repeat(20_000)}`)
    refresh(`http-equiv${'<'.repeat(60_000)}`)
    expect(process.cpuUsage(before).user).toBeLessThan(500_000)
  })
})
