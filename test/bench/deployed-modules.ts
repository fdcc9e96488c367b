import { fileURLToPath, pathToFileURL } from 'node:url'

/** Modules of the program as it is deployed: what the build made of them, and not what the loader of the bench makes of their source. */
export const deployed = {
  avro: () => load<typeof import('../../src/message/avro.ts')>('message/avro.js'),
  compileNative: () => load<typeof import('../../src/extract/native/compile-native.ts')>('extract/native/compile-native.js'),
  charset: () => load<typeof import('../../src/message/charset.ts')>('message/charset.js'),
  declarative: () => load<typeof import('../../src/extract/declarative-extractor.ts')>('extract/declarative-extractor.js'),
  deriveSchema: () => load<typeof import('../../src/extract/derive-schema.ts')>('extract/derive-schema.js'),
  envelope: () => load<typeof import('../../src/extract/envelope.ts')>('extract/envelope.js'),
  nativePage: () => load<typeof import('../../src/extract/native/native-page.ts')>('extract/native/native-page.js'),
  nativeParser: () => load<typeof import('../../src/extract/native/native-parser.ts')>('extract/native/native-parser.js'),
  nodeText: () => load<typeof import('../../src/extract/sources/node-text.ts')>('extract/sources/node-text.js'),
  pageView: () => load<typeof import('../../src/extract/page-view.ts')>('extract/page-view.js'),
  parsePage: () => load<typeof import('../../src/extract/parse-page.ts')>('extract/parse-page.js'),
  readDefinition: () => load<typeof import('../../src/extract/language/read-definition.ts')>('extract/language/read-definition.js'),
}

async function load<T>(path: string): Promise<T> {
  const file = fileURLToPath(new URL(`../../dist/${path}`, import.meta.url))
  return (await import(pathToFileURL(file).href)) as T
}
