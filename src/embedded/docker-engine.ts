import { KAFKA_VERSION } from './kafka-jars.ts'
import { runCommand, tail } from './run-command.ts'
import { type BrokerPorts, brokerProperties } from './server-properties.ts'

export const KAFKA_IMAGE = `apache/kafka:${KAFKA_VERSION}`

/** Whether a Docker engine answers, and why not. */
export type DockerAnswer = { readonly kind: 'answers' } | { readonly kind: 'none'; readonly reason: string }

export async function askDocker(signal?: AbortSignal): Promise<DockerAnswer> {
  const result = await runCommand('docker', ['info', '--format', '{{.ServerVersion}}'], {
    timeoutMs: 10_000,
    ...(signal === undefined ? {} : { signal }),
  })
  if (result.kind === 'done') return { kind: 'answers' }
  return { kind: 'none', reason: result.kind === 'missing' ? 'no docker on the PATH' : `no engine answers (${tail(result.output, 1)})` }
}

/** One container and one volume for each data folder, named after its cluster. */
export function containerName(clusterId: string): string {
  return `millrace-${clusterId}`
}

/** Says whose the container is, in the arguments of the client as well: `running-broker.ts` finds it by that. */
const FOLDER_LABEL = 'millrace.folder'

export function containerLabel(mark: string): string {
  return `${FOLDER_LABEL}=${mark}`
}

/** The folder (`folderMark`) whose broker runs in the container of this cluster; empty when none runs. */
export async function containerFolder(clusterId: string, signal?: AbortSignal): Promise<string> {
  const args = ['ps', '--filter', `name=^/?${containerName(clusterId)}$`, '--format', `{{.Label "${FOLDER_LABEL}"}}`]
  const result = await runCommand('docker', args, { timeoutMs: 10_000, ...(signal === undefined ? {} : { signal }) })
  return result.kind === 'done' ? result.output.trim() : ''
}

/**
 * Arguments of `docker run` in the foreground: the client is our child and passes SIGTERM on. The data lies in a volume, since the user
 * of the image could not write into a folder of ours.
 */
export function dockerRunArgs(clusterId: string, ports: BrokerPorts, mark: string): string[] {
  // Nobody fences it before it starts again: it resigns when it ends, and where it can't its session has to end soon, for the start waits
  // for that.
  const properties = {
    ...brokerProperties(ports, '0.0.0.0', '/var/lib/kafka/data'),
    'controlled.shutdown.enable': 'true',
    'broker.session.timeout.ms': '1000',
  }
  const environment = Object.entries(properties).flatMap(([name, value]) => ['--env', `${environmentName(name)}=${value}`])
  return [
    'run',
    '--rm',
    '--name',
    containerName(clusterId),
    '--label',
    containerLabel(mark),
    '--publish',
    `127.0.0.1:${ports.port}:${ports.port}`,
    '--volume',
    `${containerName(clusterId)}:/var/lib/kafka/data`,
    '--env',
    `CLUSTER_ID=${clusterId}`,
    '--env',
    'KAFKA_HEAP_OPTS=-Xmx384m',
    ...environment,
    KAFKA_IMAGE,
  ]
}

/** Names of the image: dots become `_`, `_` becomes `__`, `-` becomes `___`, behind `KAFKA_`. */
export function environmentName(property: string): string {
  return `KAFKA_${property.replaceAll('_', '__').replaceAll('-', '___').replaceAll('.', '_').toUpperCase()}`
}
