(* goldstein-check-verified FILE: read a proof file and ask the checker that is proved to be sound.
   What is below is believed, not proved: that the JSON text is read as what it says. With --print
   it writes what it has read as a proof file of its own, and decides nothing. *)

module I = Z  (* Zarith's; the checker has a Z of its own *)
open Checker

exception Unreadable of string
exception Outside of string

let need good what = if not good then raise (Unreadable what)
let largest_size = 1 lsl 22 and largest_file = 1 lsl 26 and deepest = 16

(* --- JSON: objects, lists, strings without escapes, integers, words; nothing else occurs --- *)

type json =
  | Object of (string * json) list | List of json list | Text of string | Int of int | Null
  | True | False

let parse text =
  let n = String.length text and at = ref 0 in
  let fail () = raise (Unreadable (Printf.sprintf "not JSON of a proof file, at byte %d" !at)) in
  let rec peek () =
    if !at >= n then fail ();
    match text.[!at] with ' ' | '\t' | '\n' | '\r' -> incr at; peek () | c -> c in
  let expect c = if peek () <> c then fail (); incr at in
  let rec items close item found =
    if found = [] && peek () = close then (incr at; [])
    else
      let found = item () :: found in
      match peek () with
      | ',' -> incr at; items close item found
      | c when c = close -> incr at; List.rev found
      | _ -> fail () in
  let quoted () =
    expect '"';
    let start = !at in
    while !at < n && text.[!at] <> '"' do
      if text.[!at] = '\\' || text.[!at] < ' ' then fail ();
      incr at
    done;
    if !at >= n then fail ();
    incr at;
    String.sub text start (!at - 1 - start) in
  let digits () =
    let start = !at in
    while !at < n && (match text.[!at] with '0' .. '9' -> true | _ -> false) do incr at done;
    let found = String.sub text start (!at - start) in
    let long = String.length found in
    if long < 1 || long > 15 || (long > 1 && found.[0] = '0') then fail ();
    int_of_string found in
  let rec value depth =
    if depth > deepest then fail ();
    match peek () with
    | '"' -> Text (quoted ())
    | '[' -> incr at; List (items ']' (fun () -> value (depth + 1)) [])
    | '{' ->
        incr at;
        let pair () =
          let key = (ignore (peek ()); quoted ()) in
          expect ':';
          (key, value (depth + 1)) in
        let pairs = items '}' pair [] in
        let keys = List.map fst pairs in
        need (List.length (List.sort_uniq compare keys) = List.length keys) "a key comes twice";
        Object pairs
    | 'n' -> word "null" Null
    | 't' -> word "true" True
    | 'f' -> word "false" False
    | _ -> Int (digits ())
  and word letters meant =
    let long = String.length letters in
    if !at + long > n || String.sub text !at long <> letters then fail ();
    at := !at + long;
    meant in
  let found = value 0 in
  while !at < n && String.contains " \t\n\r" text.[!at] do incr at done;
  if !at < n then fail ();
  found

let fields = function Object pairs -> pairs | _ -> raise (Unreadable "an object is missing")
let list = function List l -> l | _ -> raise (Unreadable "a list is missing")
let text = function Text s -> s | _ -> raise (Unreadable "a string is missing")

let member data name =
  match List.assoc_opt name (fields data) with
  | Some found -> found
  | None -> raise (Unreadable ("the field " ^ name ^ " is missing"))

let only data required optional =
  List.iter (fun (name, _) -> need (List.mem name required || List.mem name optional)
    "a field that a proof file does not have") (fields data);
  List.iter (fun name -> ignore (member data name)) required

(* --- numbers: 3, 0x1f/0x25, 0x1.8p-3 --- *)

let whole digits =  (* Zarith reads signs and underscores, too: they are no part of the format *)
  let long = String.length digits in
  let hexadecimal = long > 2 && String.sub digits 0 2 = "0x" in
  let plain c = match c with '0' .. '9' -> true | 'a' .. 'f' -> hexadecimal | _ -> false in
  let body = if hexadecimal then String.sub digits 2 (long - 2) else digits in
  need (body <> "" && String.for_all plain body && String.length body <= 250000
        && (hexadecimal || long <= 4000)) "not a number of a proof file";
  I.of_string_base (if hexadecimal then 16 else 10) body

let unsigned body =
  match String.index_opt body 'p' with
  | Some at ->  (* a float64: 0x1.8p-3 *)
      let mantissa = String.sub body 0 at in
      let exponent = String.sub body (at + 1) (String.length body - at - 1) in
      let lead, digits = match String.split_on_char '.' mantissa with
        | [ lead ] -> (lead, "")
        | [ lead; digits ] when digits <> "" -> (lead, digits)
        | _ -> raise (Unreadable "not a number of a proof file") in
      let long = String.length exponent in
      need ((lead = "0x0" || lead = "0x1") && String.length digits <= 16 && long >= 2 && long <= 5
            && (exponent.[0] = '+' || exponent.[0] = '-')) "not a number of a proof file";
      let size = I.to_int (let e = String.sub exponent 1 (long - 1) in
                           need (not (String.contains e 'x')) "not a number of a proof file";
                           whole e) in
      need (size <= 1100) "an exponent is beyond those of float64";
      let power = (if exponent.[0] = '-' then -size else size) - 4 * String.length digits in
      let top = whole (lead ^ digits) in
      if power >= 0 then (I.shift_left top power, I.one) else (top, I.shift_left I.one (-power))
  | None -> (
      match String.split_on_char '/' body with
      | [ top ] -> (whole top, I.one)
      | [ top; bottom ] -> (whole top, whole bottom)
      | _ -> raise (Unreadable "not a number of a proof file"))

let number data =
  let s = text data in
  let minus = s <> "" && s.[0] = '-' in
  let top, bottom = unsigned (if minus then String.sub s 1 (String.length s - 1) else s) in
  need (I.sign bottom > 0) "a denominator is 0";
  reduced { qnum = (if minus then I.neg top else top); qden = bottom }

let numbers data = List.map number (list data)

let place = function Int k -> k | _ -> raise (Unreadable "an integer is missing")

let natural data =
  let k = place data in
  need (0 < k && k <= largest_size) "a size is not positive, or too large";
  k

let vector size data =
  let found = numbers data in
  need (List.length found = size) "a vector has a wrong length";
  found

(* --- nodes --- *)

let optional data name read default =
  match List.assoc_opt name (fields data) with Some found -> read found | None -> default

let one = { qnum = I.one; qden = I.one }

let matrix data of_ =
  let columns = natural (member data "columns") and width = natural (member data "width") in
  let at = optional data "at" (fun l -> Some (List.map (fun r -> List.map place (list r)) (list l))) None in
  let rows = optional data "rows" (fun l -> Some (List.map numbers (list l))) None in
  let pairs places entries =
    need (List.length places = List.length entries) "places and rows do not fit";
    need (List.length (List.sort_uniq compare places) = List.length places) "a place comes twice";
    List.combine places entries in
  let all = lazy (List.init width Fun.id) in
  let both = match at, rows with
    | Some at, Some rows ->
        need (List.length at = List.length rows) "places and rows do not fit";
        List.map2 pairs at rows
    | Some at, None -> List.map (fun places -> pairs places (List.map (fun _ -> one) places)) at
    | None, Some rows -> List.map (pairs (Lazy.force all)) rows
    | None, None -> raise (Unreadable "a matrix without rows and places") in
  Affine (of_, columns, width, both, optional data "offset" numbers [])

let node data =
  let of_ = List.map place (list (member data "of")) in
  let single () = match of_ with [ a ] -> a | _ -> raise (Unreadable "a node of one argument") in
  let only names more = only data ("op" :: "of" :: names) more in
  match text (member data "op") with
  | "affine" -> only [ "columns"; "width" ] [ "rows"; "at"; "offset" ]; matrix data (single ())
  | "add" -> only [] []; Add of_
  | "multiply" -> (
      only [] [];
      match of_ with [ a; b ] -> Multiply (a, b) | _ -> raise (Unreadable "a product of two"))
  | "piecewise" ->
      only [ "breakpoints"; "pieces" ] [];
      let pieces = List.map numbers (list (member data "pieces")) in
      need (List.length pieces <= 1000 && List.exists (( <> ) []) pieces
            && List.for_all (fun p -> List.length p <= 32) pieces) "no piece, or too many of them";
      let breakpoints = numbers (member data "breakpoints") in
      need (List.for_all (List.for_all (fun q -> I.numbits q.qnum < 9999 && I.numbits q.qden < 9999))
              (breakpoints :: pieces)) "a polynomial is too long";
      Piecewise (single (), breakpoints, pieces)
  | "max" -> only [ "columns" ] []; Max (single (), natural (member data "columns"))
  | "norm2" -> only [ "columns" ] []; Norm2 (single (), natural (member data "columns"))
  | "logsumexp" -> only [ "columns" ] []; LogSumExp (single (), natural (member data "columns"))
  | "log" -> only [] []; Log (single ())
  | _ -> raise (Unreadable "a node of an unknown kind")

let program data =
  match list data with
  | first :: rest ->
      only first [ "op"; "size" ] [ "of" ];
      need (text (member first "op") = "variable" && optional first "of" list [] = [])
        "the first node must be the variable";
      { dimension = natural (member first "size"); nodes = List.map node rest }
  | [] -> raise (Unreadable "a function without nodes")

(* --- the file --- *)

let others = [ "plus"; "minimum" ]
let first = [ "near"; "goldstein" ]  (* these are in version 1 of the format, too *)
let vectors kind = if kind = "goldstein" then "points" else "directions"

let evidence_fields = function
  | "near" -> [ "pivot"; "directions"; "weights" ]
  | "goldstein" -> [ "points"; "weights" ]
  | _ -> [ "pivot"; "directions"; "weights"; "rows"; "normal"; "separation" ]

let limit = function Null -> None | data -> Some (number data)

let constraint_ curved size data =
  only data [ "function"; "lower"; "upper" ] [];
  let p = program (member data "function") in
  need (well_formed p && p.dimension = size) "a constraint is malformed";
  if not (curved || affine p) then raise (Outside "a constraint that is not affine");
  (p, (limit (member data "lower"), limit (member data "upper")))

let limits curved size data =
  let pairs data =
    only data [ "lower"; "upper" ] [];
    let side name =
      let found = List.map limit (list (member data name)) in
      need (List.length found = size) "a list of bounds has a wrong length";
      found in
    List.combine (side "lower") (side "upper") in
  let constraints =
    optional data "constraints" (fun l -> List.map (constraint_ curved size) (list l)) [] in
  { bounds = optional data "bounds" pairs []; constraints; rows = []; normal = [] }

(* For affine constraints the directions of the rows and the separation play no part. *)
let multipliers size data evidence =
  let row data =
    only data [ "constraint"; "weight"; "direction" ] [];
    ignore (vector size (member data "direction"));
    (place (member data "constraint"), number (member data "weight")) in
  let own = limits false size data in
  let rows = List.map row (list (member evidence "rows")) in
  need (List.for_all (fun (k, _) -> k < List.length own.constraints) rows) "no such constraint";
  ignore (vector size (member evidence "separation"));
  { own with rows; normal = vector size (member evidence "normal") }

let read data =
  let claim = member data "claim" and evidence = member data "evidence" in
  let kind = text (member claim "kind") in
  if List.mem kind others then raise (Outside ("a claim of kind " ^ kind));
  need (List.mem kind ("near-kkt" :: "refutation" :: first)) "a claim of an unknown kind";
  only data [ "schema"; "version"; "claim"; "x"; "evidence"; "function" ]
    (if List.mem kind first then [] else [ "bounds"; "constraints" ]);
  let version = member data "version" in
  need (member data "schema" = Text "goldstein-proof"
        && (version = Int 2 || (version = Int 1 && List.mem kind first)))
    "another schema or version";
  let f = program (member data "function") in
  let size = f.dimension in
  let x = vector size (member data "x") in
  if kind = "refutation" then begin
    only claim [ "kind"; "fall" ] [];
    only evidence [ "point" ] [];
    let point = vector size (member evidence "point") and nil = { one with qnum = I.zero } in
    { function0 = f; x; eps = nil; delta = nil;
      proof = Refutation (point, number (member claim "fall"), limits true size data) }
  end else begin
  only claim [ "kind"; "eps"; "delta" ] [];
  only evidence (evidence_fields kind) [];
  let weights = numbers (member evidence "weights") in
  let rows = List.map (vector size) (list (member evidence (vectors kind))) in
  need (List.length rows = List.length weights) "one weight per vector is needed";
  let pairs = List.combine weights rows in
  let pivot () = vector size (member evidence "pivot") in
  { function0 = f; x;
    eps = number (member claim "eps"); delta = number (member claim "delta");
    proof = (match kind with
             | "near" -> Near (pivot (), pairs)
             | "goldstein" -> Goldstein pairs
             | _ -> NearKKT (pivot (), pairs, multipliers size data evidence)) }
  end

(* --- the file, written again --- *)

let print file =
  let join l = "[" ^ String.concat ", " l ^ "]" in
  let quote s = "\"" ^ s ^ "\"" in
  let number q = quote (I.to_string q.qnum ^ "/" ^ I.to_string q.qden) in
  let numbers l = join (List.map number l) and ints l = join (List.map string_of_int l) in
  let op name of_ more =
    Printf.sprintf "{\"op\": \"%s\", \"of\": %s%s}" name (ints of_)
      (String.concat "" (List.map (fun (key, s) -> Printf.sprintf ", \"%s\": %s" key s) more)) in
  let node = function
    | Affine (a, c, width, rows, offset) ->
        op "affine" [ a ]
          ([ ("columns", string_of_int c); ("width", string_of_int width);
             ("at", join (List.map (fun r -> ints (List.map fst r)) rows));
             ("rows", join (List.map (fun r -> numbers (List.map snd r)) rows)) ]
           @ if offset = [] then [] else [ ("offset", numbers offset) ])
    | Add args -> op "add" args []
    | Multiply (a, b) -> op "multiply" [ a; b ] []
    | Piecewise (a, bs, ps) ->
        op "piecewise" [ a ] [ ("breakpoints", numbers bs); ("pieces", join (List.map numbers ps)) ]
    | Max (a, c) -> op "max" [ a ] [ ("columns", string_of_int c) ]
    | Norm2 (a, c) -> op "norm2" [ a ] [ ("columns", string_of_int c) ]
    | LogSumExp (a, c) -> op "logsumexp" [ a ] [ ("columns", string_of_int c) ]
    | Log a -> op "log" [ a ] [] in
  let functions f =
    Printf.sprintf "[{\"op\": \"variable\", \"size\": %d}%s]" f.dimension
      (String.concat "" (List.map (fun n -> ",\n" ^ node n) f.nodes)) in
  let limit = function Some q -> number q | None -> "null" in
  let pivot y = "\"pivot\": " ^ numbers y ^ ", " in
  let multiplied m =
    let row (k, w) = Printf.sprintf "{\"constraint\": %d, \"weight\": %s}" k (number w) in
    Printf.sprintf "\"rows\": %s, \"normal\": %s, " (join (List.map row m.rows))
      (numbers m.normal) in
  let limits m =
    let side pick = join (List.map (fun l -> limit (pick l)) m.bounds) in
    let one (p, (low, high)) =
      Printf.sprintf "{\"function\": %s, \"lower\": %s, \"upper\": %s}" (functions p) (limit low)
        (limit high) in
    (if m.bounds = [] then ""
     else Printf.sprintf ",\n\"bounds\": {\"lower\": %s, \"upper\": %s}" (side fst) (side snd))
    ^ Printf.sprintf ",\n\"constraints\": %s" (join (List.map one m.constraints)) in
  let stated = Printf.sprintf "\"eps\": %s, \"delta\": %s" (number file.eps) (number file.delta) in
  let weighted kind pairs =
    Printf.sprintf "\"%s\": %s, \"weights\": %s" (vectors kind)
      (join (List.map (fun (_, v) -> numbers v) pairs)) (numbers (List.map fst pairs)) in
  let kind, claim, shown, after = match file.proof with
    | Near (y, pairs) -> ("near", stated, pivot y ^ weighted "near" pairs, "")
    | Goldstein pairs -> ("goldstein", stated, weighted "goldstein" pairs, "")
    | NearKKT (y, pairs, m) ->
        ("near-kkt", stated, pivot y ^ multiplied m ^ weighted "near-kkt" pairs, limits m)
    | Refutation (z, fall, m) ->
        ("refutation", "\"fall\": " ^ number fall, "\"point\": " ^ numbers z, limits m) in
  Printf.printf "{\"schema\": \"goldstein-proof\", \"version\": %d,\n\"claim\": {\"kind\": \"%s\", %s},\n\
     \"x\": %s,\n\"evidence\": {%s},\n\"function\": %s%s}\n"
    (if List.mem kind first then 1 else 2) kind claim (numbers file.x) shown
    (functions file.function0) after

let contents path =
  let channel = open_in_bin path in
  let size = in_channel_length channel in
  need (size <= largest_file) "a file that is too large";
  let found = really_input_string channel size in
  close_in channel;
  found

(* A compressed file is unpacked by gzip, up to one byte too many. *)
let unpacked path =
  let raw = contents path in
  if String.length raw < 2 || String.sub raw 0 2 <> "\x1f\x8b" then raw
  else begin
    let channel = Unix.open_process_args_in "gzip" [| "gzip"; "-dcq"; "--"; path |] in
    let found = Buffer.create 65536 in
    (try while Buffer.length found <= largest_file do Buffer.add_channel found channel 1 done
     with End_of_file -> ());
    need (Buffer.length found <= largest_file) "a file that is too large";
    need (Unix.close_process_in channel = Unix.WEXITED 0) "gzip cannot unpack it";
    Buffer.contents found
  end

let decide printing path =
  match read (parse (unpacked path)) with
  | exception Outside what -> print_endline ("outside the verified fragment: " ^ what); 3
  | exception Unreadable what -> print_endline ("UNREADABLE: " ^ what ^ "."); 2
  | file when printing -> print file; 0
  | file when not (well_formed file.function0) -> print_endline "UNREADABLE: a node is malformed."; 2
  | file when check file ->
      Printf.printf "TRUE: x is %s, for the function in this file, of %d variables.\n"
        (match file.proof with
         | Near _ -> "near stationary"
         | Goldstein _ -> "Goldstein stationary"
         | NearKKT _ -> "near a KKT point"
         | Refutation _ -> "not a minimum: f is lower at a point inside all limits")
        file.function0.dimension;
      (match file.proof with
       | Near _ when convex file.function0 ->
           print_endline "MINIMUM: f is convex, so that f(z) >= f(y) - eps |z - y| for every z, \
                          at some y with |y - x| <= delta."
       | _ -> ()); 0
  | _ -> print_endline "FALSE: the evidence does not prove the claim."; 1

let () =
  let usage = "usage: goldstein-check-verified [--print] FILE" in
  exit (try match Array.to_list Sys.argv with
            | [ _; "--print"; path ] -> decide true path
            | [ _; path ] when path <> "--print" -> decide false path
            | _ -> print_endline usage; 2
        with why -> print_endline ("UNREADABLE: " ^ Printexc.to_string why ^ "."); 2)
