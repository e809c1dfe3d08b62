// The oracle of test_hashing_against_java.py: what does Java itself say?
//
// Reads keys from standard input, a line each, and prints Arrays.deepHashCode of each key's values, which is what Storm
// takes for a fields grouping. A value is a letter for its class and its text; containers are followed by their elements:
//
//   n null          b0 b1 Boolean   i5 Integer      l5 Long         z5 BigInteger   d<bits, hex> Double
//   m1.50 BigDecimal                s<UTF-16, hex> String           y<hex> byte[]   u<text> UUID
//   D T L I O, each with ISO text: LocalDate, LocalTime, LocalDateTime, Instant, OffsetTime
//   P<seconds>,<nanoseconds> Duration               [2 List of two  (2 Set of two   {1 Map of one: key, value
//
// Run it with a Java from 11 on: java JavaHashes.java

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.UUID;

public class JavaHashes {
    public static void main(String[] args) throws Exception {
        BufferedReader keys = new BufferedReader(new InputStreamReader(System.in, "US-ASCII"));
        String line;
        while ((line = keys.readLine()) != null) {
            Iterator<String> words = Arrays.asList(line.isEmpty() ? new String[0] : line.split(" ")).iterator();
            List<Object> values = new ArrayList<>();
            while (words.hasNext()) {
                values.add(value(words));
            }
            System.out.println(Arrays.deepHashCode(values.toArray()));
        }
    }

    private static Object value(Iterator<String> words) {
        String word = words.next();
        String text = word.substring(1);
        switch (word.charAt(0)) {
            case 'n': return null;
            case 'b': return text.equals("1");
            case 'i': return Integer.valueOf(text);
            case 'l': return Long.valueOf(text);
            case 'z': return new BigInteger(text);
            case 'd': return Double.longBitsToDouble(Long.parseUnsignedLong(text, 16));
            case 'm': return new BigDecimal(text);
            case 's': return string(text);
            case 'y': return bytes(text);
            case 'u': return UUID.fromString(text);
            case 'D': return LocalDate.parse(text);
            case 'T': return LocalTime.parse(text);
            case 'L': return LocalDateTime.parse(text);
            case 'I': return Instant.parse(text);
            case 'O': return OffsetTime.parse(text);
            case 'P': return Duration.ofSeconds(Long.parseLong(text.split(",")[0]), Long.parseLong(text.split(",")[1]));
            case '[': return list(Integer.parseInt(text), words);
            case '(': return new HashSet<>(list(Integer.parseInt(text), words));
            case '{': return map(Integer.parseInt(text), words);
            default: throw new IllegalArgumentException(word);
        }
    }

    private static String string(String hex) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < hex.length(); i += 4) {
            text.append((char) Integer.parseInt(hex.substring(i, i + 4), 16));
        }
        return text.toString();
    }

    private static byte[] bytes(String hex) {
        byte[] bytes = new byte[hex.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }

    private static List<Object> list(int size, Iterator<String> words) {
        List<Object> elements = new ArrayList<>();
        for (int i = 0; i < size; i++) {
            elements.add(value(words));
        }
        return elements;
    }

    private static Map<Object, Object> map(int size, Iterator<String> words) {
        Map<Object, Object> entries = new HashMap<>();
        for (int i = 0; i < size; i++) {
            entries.put(value(words), value(words));
        }
        return entries;
    }
}
