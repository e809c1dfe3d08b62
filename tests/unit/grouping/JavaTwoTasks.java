// The oracle of test_two_tasks_against_java.py: which two numbers does Java draw for a key?
//
// Reads lines "BOUND KEY" from standard input, the key's bytes in hex, and prints the first two numbers below BOUND that a
// java.util.Random gives whose seed is Arrays.hashCode of the bytes, the second one increased by 1, modulo BOUND, where the two
// are equal: how Storm's partial key grouping finds a key's tasks.
//
// Run it with a Java from 11 on: java JavaTwoTasks.java

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Random;

public class JavaTwoTasks {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "US-ASCII"));
        String line;
        while ((line = lines.readLine()) != null) {
            String[] words = line.split(" ", -1);
            int bound = Integer.parseInt(words[0]);
            byte[] key = new byte[words[1].length() / 2];
            for (int i = 0; i < key.length; i++) {
                key[i] = (byte) Integer.parseInt(words[1].substring(2 * i, 2 * i + 2), 16);
            }
            Random random = new Random(Arrays.hashCode(key));
            int first = random.nextInt(bound);
            int second = random.nextInt(bound);
            System.out.println(first + " " + (first == second ? (second + 1) % bound : second));
        }
    }
}
