import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.avro.Conversions;
import org.apache.avro.Schema;
import org.apache.avro.data.TimeConversions;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A client that knows Millrace by its topics and the schema registry alone, with Apache's own libraries: BROKERS REGISTRY TOPIC SUBJECT N. Reads N
 * committed records with the newest schema of the subject, whichever version wrote them, and prints a line for each.
 */
class RegistryClient {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final HttpClient HTTP = HttpClient.newHttpClient();

  public static void main(String[] args) throws Exception {
    String registry = args[1];
    Schema newest = schema(registry + "/subjects/" + args[3] + "/versions/latest");
    GenericData data = new GenericData();
    data.addLogicalTypeConversion(new Conversions.DecimalConversion());
    data.addLogicalTypeConversion(new TimeConversions.DateConversion());
    data.addLogicalTypeConversion(new TimeConversions.TimestampMillisConversion());
    Map<Integer, Schema> writers = new HashMap<>();
    Properties settings = new Properties();
    settings.put("bootstrap.servers", args[0]);
    settings.put("isolation.level", "read_committed");
    settings.put("auto.offset.reset", "earliest");
    int left = Integer.parseInt(args[4]);
    try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      List<TopicPartition> partitions =
          consumer.partitionsFor(args[2]).stream().map(p -> new TopicPartition(p.topic(), p.partition())).toList();
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      long deadline = System.currentTimeMillis() + 30_000;
      while (left > 0 && System.currentTimeMillis() < deadline) {
        for (ConsumerRecord<byte[], byte[]> message : consumer.poll(Duration.ofMillis(500))) {
          ByteBuffer value = ByteBuffer.wrap(message.value());
          if (value.get() != 0) throw new IllegalStateException("not in the framing of a registry");
          int id = value.getInt();
          Schema writer = writers.get(id);
          if (writer == null) writers.put(id, writer = schema(registry + "/schemas/ids/" + id));
          var reader = new GenericDatumReader<GenericRecord>(writer, newest, data);
          GenericRecord record = reader.read(null, DecoderFactory.get().binaryDecoder(message.value(), 5, message.value().length - 5, null));
          System.out.println(line(record));
          left--;
        }
      }
    }
    if (left > 0) throw new IllegalStateException(left + " records did not come");
  }

  private static String line(GenericRecord record) {
    var fields = JSON.createObjectNode();
    GenericRecord data = (GenericRecord) record.get("data");
    for (Schema.Field field : data.getSchema().getFields()) {
      Object value = data.get(field.pos());
      fields.put(field.name(), value == null ? null : value.getClass().getSimpleName() + " " + value);
    }
    return JSON.createObjectNode().put("version", (Integer) record.get("extractorVersion")).set("data", fields).toString();
  }

  private static Schema schema(String url) throws Exception {
    HttpResponse<String> answer = HTTP.send(HttpRequest.newBuilder(URI.create(url)).build(), HttpResponse.BodyHandlers.ofString());
    JsonNode body = JSON.readTree(answer.body());
    return new Schema.Parser().parse(body.get("schema").asText());
  }
}
