// A provenance repository as dataflow engines in Java write it: Lucene for the index, gzip for the
// events.
//
//   java -cp lucene-core.jar LucenePeer.java FRAMES DIRECTORY [THREADS]
//
// Events come as frames (bench/w1_frame.h). The reading thread decodes them, appends each as a
// record to a journal of its own and hands batches of 1,000 to THREADS (2) that make documents:
// FlowFile, file name, component and type as whole lower-case strings, time, lineage start and
// size as points, the id stored and as a sortable column. Lucene keeps 16 MB in memory and commits
// every 500,000 events. At 100 MB a journal is closed and another thread turns it into blocks of
// 1 MB, each a gzip member of level 1, with a table of (first id, offset). Finished means that all
// blocks are written and the index is committed and closed. No fsync of events, no locks of a
// repository, no schema: what is measured is less work than the real thing does.
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import java.util.zip.GZIPOutputStream;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.LongPoint;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.store.FSDirectory;

public final class LucenePeer {
    private static final int BATCH_EVENTS = 1000;
    private static final int COMMIT_EVENTS = 500_000;
    private static final int BLOCK_BYTES = 1 << 20;
    private static final long JOURNAL_BYTES = 100L << 20;
    private static final String[] TYPES = {
        "attributes_modified", "route", "content_modified", "receive", "send", "drop", "fetch",
        "create", "clone", "fork", "join", "addinfo", "remote_invocation", "upload", "download",
        "expire", "replay", "unknown"};

    private record Event(long id, long time, long entry, long lineage, long size, long claimOffset,
                         long claimSize, int type, String component, String componentType,
                         String flowfile, String transitUri, String container, String section,
                         String claim, Map<String, String> previous, Map<String, String> updated) {
    }

    // --- frames -------------------------------------------------------------------------

    private static String string(ByteBuffer from) {
        int size = from.getShort() & 0xffff;
        String text = new String(from.array(), from.position(), size, StandardCharsets.UTF_8);
        from.position(from.position() + size);
        return text;
    }

    private static Map<String, String> attributes(ByteBuffer from) {
        int count = from.get() & 0xff;
        Map<String, String> map = new LinkedHashMap<>(2 * count);
        for (int i = 0; i < count; i++) {
            String key = string(from);
            map.put(key, string(from));
        }
        return map;
    }

    private static Event decode(byte[] payload) {
        ByteBuffer from = ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN);
        return new Event(from.getLong(), from.getLong(), from.getLong(), from.getLong(),
                         from.getLong(), from.getLong(), from.getLong(), from.get(), string(from),
                         string(from), string(from), string(from), string(from), string(from),
                         string(from), attributes(from), attributes(from));
    }

    // --- events -------------------------------------------------------------------------

    private static void write(DataOutputStream out, Map<String, String> map) throws IOException {
        out.writeInt(map.size());
        for (Map.Entry<String, String> entry : map.entrySet()) {
            out.writeUTF(entry.getKey());
            out.writeUTF(entry.getValue());
        }
    }

    private static byte[] encode(Event event) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(1024);
        DataOutputStream out = new DataOutputStream(bytes);
        for (long number : new long[] {event.id, event.time, event.entry, event.lineage, event.size,
                                       event.claimOffset, event.claimSize}) {
            out.writeLong(number);
        }
        out.writeByte(event.type);
        for (String text : new String[] {event.component, event.componentType, event.flowfile,
                                         event.transitUri, event.container, event.section,
                                         event.claim}) {
            out.writeUTF(text);
        }
        write(out, event.previous);
        write(out, event.updated);
        return bytes.toByteArray();
    }

    /** Journals, and the thread that compresses those that are full. */
    private static final class EventFiles {
        private final Path directory;
        private final ExecutorService compressor = Executors.newSingleThreadExecutor();
        private final List<Future<?>> compressions = new ArrayList<>();
        private DataOutputStream out;
        private Path journal;
        private long written;

        EventFiles(Path directory) throws IOException {
            this.directory = Files.createDirectories(directory);
        }

        void append(Event event) throws IOException {
            if (out == null) {
                journal = directory.resolve(event.id + ".journal");
                out = new DataOutputStream(
                    new BufferedOutputStream(Files.newOutputStream(journal), 1 << 16));
                written = 0;
            }
            byte[] record = encode(event);
            out.writeInt(record.length);
            out.write(record);
            written += record.length + 4;
            if (written >= JOURNAL_BYTES) {
                roll();
            }
        }

        private void roll() throws IOException {
            if (out == null) {
                return;
            }
            out.close();
            out = null;
            Path full = journal;
            compressions.add(compressor.submit(() -> {
                try {
                    compress(full);
                } catch (IOException failure) {
                    throw new UncheckedIOException(failure);
                }
            }));
        }

        private static void compress(Path journal) throws IOException {
            Path compressed = Path.of(journal + ".gz");
            Path table = Path.of(journal + ".toc");
            try (DataInputStream in = new DataInputStream(
                     new BufferedInputStream(Files.newInputStream(journal), 1 << 20));
                 OutputStream out = new BufferedOutputStream(Files.newOutputStream(compressed));
                 DataOutputStream toc = new DataOutputStream(
                     new BufferedOutputStream(Files.newOutputStream(table)))) {
                long offset = 0;
                ByteArrayOutputStream block = new ByteArrayOutputStream(2 * BLOCK_BYTES);
                for (byte[] record = next(in); record != null;) {
                    long first = ByteBuffer.wrap(record).getLong();
                    block.reset();
                    DataOutputStream rows = new DataOutputStream(block);
                    for (; record != null && block.size() < BLOCK_BYTES; record = next(in)) {
                        rows.writeInt(record.length);
                        rows.write(record);
                    }
                    byte[] member = gzip(block);
                    toc.writeLong(first);
                    toc.writeLong(offset);
                    out.write(member);
                    offset += member.length;
                }
            }
            Files.delete(journal);
        }

        private static byte[] next(DataInputStream in) throws IOException {
            try {
                return in.readNBytes(in.readInt());
            } catch (EOFException end) {
                return null;
            }
        }

        private static byte[] gzip(ByteArrayOutputStream block) throws IOException {
            ByteArrayOutputStream member = new ByteArrayOutputStream(BLOCK_BYTES / 2);
            try (GZIPOutputStream out = new GZIPOutputStream(member, 1 << 16) {
                {
                    def.setLevel(1);
                }
            }) {
                block.writeTo(out);
            }
            return member.toByteArray();
        }

        void finish() throws Exception {
            roll();
            for (Future<?> compression : compressions) {
                compression.get();
            }
            compressor.shutdown();
        }
    }

    // --- index --------------------------------------------------------------------------

    private static Field whole(String name, String value) {
        return new StringField(name, value.toLowerCase(Locale.ROOT), Field.Store.NO);
    }

    private static Document document(Event event) {
        Document document = new Document();
        document.add(whole("uuid", event.flowfile));
        document.add(whole("filename", event.updated.get("filename")));
        document.add(whole("component", event.component));
        document.add(whole("type", TYPES[event.type]));
        document.add(new LongPoint("time", event.time));
        document.add(new LongPoint("lineage", event.lineage));
        document.add(new LongPoint("size", event.size));
        document.add(new StoredField("id", event.id));
        document.add(new NumericDocValuesField("id", event.id));
        return document;
    }

    /** Threads that take batches of events until they get an empty one. */
    private static final class Indexer {
        private final ArrayBlockingQueue<List<Event>> queue = new ArrayBlockingQueue<>(16);
        private final AtomicLong done = new AtomicLong();
        private final ExecutorService threads;
        private final List<Future<?>> running = new ArrayList<>();
        private final IndexWriter writer;

        Indexer(Path directory, int count) throws IOException {
            IndexWriterConfig config = new IndexWriterConfig(null);
            config.setRAMBufferSizeMB(16);
            writer = new IndexWriter(FSDirectory.open(directory), config);
            threads = Executors.newFixedThreadPool(count);
            for (int i = 0; i < count; i++) {
                running.add(threads.submit(this::index));
            }
        }

        private Void index() throws Exception {
            for (List<Event> batch = queue.take(); !batch.isEmpty(); batch = queue.take()) {
                List<Document> documents = new ArrayList<>(batch.size());
                for (Event event : batch) {
                    documents.add(document(event));
                }
                writer.addDocuments(documents);
                long before = done.getAndAdd(batch.size());
                if (before / COMMIT_EVENTS != (before + batch.size()) / COMMIT_EVENTS) {
                    writer.commit();
                }
            }
            queue.put(List.of());
            return null;
        }

        void add(List<Event> batch) throws InterruptedException {
            queue.put(batch);
        }

        void finish() throws Exception {
            queue.put(List.of());
            for (Future<?> thread : running) {
                thread.get();
            }
            threads.shutdown();
            writer.commit();
            writer.close();
        }
    }

    // --- the run ------------------------------------------------------------------------

    private static long processorNs() {
        var bean = (com.sun.management.OperatingSystemMXBean)
            ManagementFactory.getOperatingSystemMXBean();
        return bean.getProcessCpuTime();
    }

    private static long residentPeakBytes() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM")) {
                return Long.parseLong(line.replaceAll("\\D", "")) << 10;
            }
        }
        return 0;
    }

    private static long diskBytes(Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            return files.filter(Files::isRegularFile).mapToLong(file -> file.toFile().length()).sum();
        }
    }

    public static void main(String[] arguments) throws Exception {
        Path directory = Files.createDirectories(Path.of(arguments[1]));
        int threads = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 2;
        long start = System.nanoTime();
        long processor = processorNs();
        long events = 0;
        EventFiles files = new EventFiles(directory.resolve("events"));
        Indexer indexer = new Indexer(directory.resolve("index"), threads);
        byte[] length = new byte[4];
        List<Event> batch = new ArrayList<>(BATCH_EVENTS);
        try (InputStream in = new BufferedInputStream(Files.newInputStream(Path.of(arguments[0])),
                                                      4 << 20)) {
            while (in.readNBytes(length, 0, length.length) == length.length) {
                int size = ByteBuffer.wrap(length).order(ByteOrder.LITTLE_ENDIAN).getInt();
                Event event = decode(in.readNBytes(size));
                files.append(event);
                batch.add(event);
                events++;
                if (batch.size() == BATCH_EVENTS) {
                    indexer.add(batch);
                    batch = new ArrayList<>(BATCH_EVENTS);
                }
            }
        }
        if (!batch.isEmpty()) {
            indexer.add(batch);
        }
        long acknowledged = System.nanoTime() - start;
        indexer.finish();
        files.finish();
        long finished = System.nanoTime() - start;
        System.out.printf("{\"name\": \"lucene+gzip\", \"events\": %d, \"acknowledged_ns\": %d, "
                          + "\"finished_ns\": %d, \"cpu_ns\": %d, \"resident_peak_bytes\": %d, "
                          + "\"disk_bytes\": %d}%n", events, acknowledged, finished,
                          processorNs() - processor, residentPeakBytes(), diskBytes(directory));
    }
}
