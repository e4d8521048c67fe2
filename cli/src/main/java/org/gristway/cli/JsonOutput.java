package org.gristway.cli;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.function.Consumer;
import tools.jackson.core.JsonGenerator;
import tools.jackson.core.exc.JacksonIOException;
import tools.jackson.databind.json.JsonMapper;

/** Writes one JSON object and a newline: what every {@code --json} prints, and nothing else. */
final class JsonOutput {

  private JsonOutput() {}

  /**
   * Writes it.
   *
   * @param properties writes what stands in the object
   */
  static void write(OutputStream out, Consumer<JsonGenerator> properties) throws IOException {
    try {
      JsonGenerator json = JsonMapper.shared().createGenerator(new Unclosed(out));
      json.writeStartObject();
      properties.accept(json);
      json.writeEndObject();
      json.close();
    } catch (JacksonIOException failed) {
      throw failed.getCause();
    }
    out.write('\n');
  }

  /** Jackson closes what it writes to, and standard output is not its to close. */
  private static final class Unclosed extends FilterOutputStream {
    Unclosed(OutputStream out) {
      super(out);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
      out.write(bytes, offset, length);
    }

    @Override
    public void close() {}
  }
}
