(** The checker as an OCaml program. Integers become Zarith's, sizes and places machine integers
    (the reader bounds them by 2^22, so that no product of two of them overflows). *)

From Coq Require Import ZArith Arith Extraction ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlZBigInt.
From Verified Require Import Programs Numbers Check.

Extract Constant Z.sqrt =>
  "(fun n -> if Big_int_Z.sign_big_int n < 0 then n else Big_int_Z.sqrt_big_int n)".
Extract Constant Z.gcd => "Big_int_Z.gcd_big_int".
Extract Constant Pos.of_succ_nat => "(fun n -> Big_int_Z.big_int_of_int (n + 1))".
Extract Constant Nat.div => "(fun n m -> if m = 0 then 0 else n / m)".
Extract Constant Nat.modulo => "(fun n m -> if m = 0 then n else n mod m)".
Extract Inlined Constant Nat.leb => "(<=)".
Extract Inlined Constant Nat.ltb => "(<)".

Extraction "checker.ml" well_formed affine check convex.
